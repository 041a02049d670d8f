"""Converts USDT at the market's rate less the spread, at most what the gateway owns."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import (
    DomainError,
    PayoutConvertFrozen,
    PayoutConvertInsufficient,
    PayoutConvertNoRate,
    PayoutConvertSameAsset,
    PayoutFromCurrencyUnsupported,
)
from core.ids import uuid7
from core.rates.pricing import RATE_DIGITS
from models.db.base import transaction
from models.invariants import checkpoint
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, CONVERSION, EQUITY, FEES, GAS, GATEWAY, NETWORK_FEES, Account
from models.payouts import conversion, freezes
from models.payouts.conversion import OWN_KINDS
from models.payouts.rows import PayoutRow
from tests.models.builders import CATALOGUE, assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of, net_of
from tests.models.payouts.builders import RECIPIENT, USDT, fund, stock

ETH = 10**18
RATES = {"USDT": 10**RATE_DIGITS, "ETH": 2000 * 10**RATE_DIGITS, "BTC": 95_000 * 10**RATE_DIGITS}
SPREAD = 5_000
database = pytest.mark.usefixtures("database")


def price(units: int = ETH, currency: str = "ETH", **changed: Any) -> conversion.Conversion:
    asked: dict[str, Any] = {"from_currency": "USDT", "spread_ppm": SPREAD}
    rates: Mapping[str, int] = changed.pop("rates", RATES)
    return conversion.price(CATALOGUE, rates, currency=currency, units=units, **asked | changed)


def test_the_rate_has_the_spread_and_the_taken_sum_is_whole_in_usdt() -> None:
    change = price()

    assert change.rate == "0.0004975"
    assert change.from_units == 2_010_050_252 * 10**12


def test_without_a_spread_a_coin_costs_its_market_value() -> None:
    assert price(ETH // 2, spread_ppm=0).from_units == 1000 * USDT


@database
def test_the_gateways_own_balance_is_the_same_at_any_audit_checkpoint() -> None:
    stock(3 * ETH, currency="ETH")
    assert conversion.owned_units("ETH") == 3 * ETH

    assert checkpoint.advance(within_s=5)
    assert conversion.owned_units("ETH") == 3 * ETH

    stock(2 * ETH, currency="ETH")
    assert conversion.owned_units("ETH") == 5 * ETH


@given(
    steps=st.integers(1, 10**15),
    usd=st.integers(1, 10**7 * 10**RATE_DIGITS),
    usdt=st.integers(10**RATE_DIGITS // 2, 2 * 10**RATE_DIGITS),
    spread=st.integers(0, 500_000),
)
def test_the_taken_sum_covers_the_given_one_at_the_shown_rate(steps: int, usd: int, usdt: int, spread: int) -> None:
    units = steps * 10 ** (CATALOGUE.scale("BTC") - CATALOGUE.digits("BTC"))
    change = price(units, "BTC", rates={"USDT": usdt, "BTC": usd}, spread_ppm=spread)
    rate, cent = Fraction(change.rate), 10**12

    bought = Fraction(change.from_units, USDT) * rate
    wanted = Fraction(units, 10 ** CATALOGUE.scale("BTC"))

    assert change.from_units % cent == 0
    assert bought >= wanted
    assert Fraction(change.from_units - cent, USDT) * rate < wanted
    assert rate <= Fraction(usdt, usd) * Fraction(10**6 - spread, 10**6)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"from_currency": "ETH"}, PayoutConvertSameAsset),
        ({"from_currency": "USDT", "currency": "USDT"}, PayoutConvertSameAsset),
        ({"from_currency": "BTC"}, PayoutFromCurrencyUnsupported),
        ({"from_currency": "DOGE"}, PayoutFromCurrencyUnsupported),
        ({"rates": {"USDT": 10**RATE_DIGITS}}, PayoutConvertNoRate),
        ({"rates": {"ETH": 10**RATE_DIGITS}}, PayoutConvertNoRate),
        ({"rates": RATES | {"ETH": 10**60}}, PayoutConvertNoRate),
    ],
)
def test_unsupported_conversions_are_refused(changed: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        price(**changed)


# Books ------------------------------------------------------------------------------------------------------


def order(merchant_id: UUID, units: int, *, fee_units: int = 0) -> PayoutRow:
    return PayoutRow(
        id=uuid7(),
        merchant_id=merchant_id,
        order_id="1",
        kind="payout",
        currency="ETH",
        network="ethereum",
        address=RECIPIENT.lower(),
        amount_units=units,
        fee_units=fee_units,
        to_units=units,
        is_fee_on_top=True,
        status="approved",
        created_by="pk",
    )


def book(merchant_id: UUID, units: int = ETH, *, from_units: int = 10 * USDT, fee_units: int = 0) -> None:
    with transaction():
        conversion.book(order(merchant_id, units, fee_units=fee_units), from_currency="USDT", from_units=from_units)


@database
def test_both_sides_are_booked_against_the_gateways_own_accounts() -> None:
    shop = merchant()
    fund(shop, 25 * USDT)
    stock(5 * ETH, currency="ETH", kind=FEES)

    book(shop, ETH, fee_units=ETH)

    assert (balances_of(shop), balances_of(shop, "ETH")) == ({AVAILABLE: 15 * USDT}, {AVAILABLE: 2 * ETH})
    assert net_of(Account(GATEWAY, CONVERSION, "USDT")) == 10 * USDT
    assert net_of(Account(GATEWAY, CONVERSION, "ETH")) == -2 * ETH
    assert conversion.owned_units("ETH") == 3 * ETH
    assert_sound()


@database
def test_the_gateway_owns_its_holdings_less_merchants_money_and_spends() -> None:
    fund(merchant(), 50 * ETH, currency="ETH")
    for kind in OWN_KINDS:
        stock(ETH, currency="ETH", kind=kind)
    with transaction():
        spent = ledger.Transfer(
            Account(GATEWAY, GAS, "ETH"), Account(GATEWAY, ledger.CUSTODY, "ETH", "ethereum"), 2 * ETH
        )
        ledger.post("gas", [spent])

    assert conversion.owned_units("ETH") == 4 * ETH
    assert conversion.owned_units("BTC") == 0


@database
def test_a_conversion_beyond_the_inventory_is_refused_before_booking() -> None:
    shop = merchant()
    fund(shop, 25 * USDT)
    fund(shop, ETH, currency="ETH")
    stock(ETH - 1, currency="ETH")

    with pytest.raises(PayoutConvertFrozen):
        book(shop)
    stock(1, currency="ETH", kind=NETWORK_FEES)
    book(shop)

    assert conversion.owned_units("ETH") == 0


@database
def test_two_concurrent_conversions_cannot_both_take_the_last_inventory() -> None:
    shops = [merchant() for _ in range(4)]
    for shop in shops:
        fund(shop, 10 * USDT)
    stock(2 * ETH, currency="ETH", kind=EQUITY)

    answers = at_once(4, lambda number: book(shops[number]))

    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType"] * 2 + ["PayoutConvertFrozen"] * 2
    assert conversion.owned_units("ETH") == 0
    assert_sound()


@database
def test_a_refused_conversion_changes_nothing() -> None:
    shop = merchant()
    fund(shop, 10 * USDT - 1)
    stock(ETH, currency="ETH")

    with pytest.raises(PayoutConvertInsufficient):
        book(shop)
    fund(shop, 1)
    freezes.freeze("conversion", reason="test", frozen_by="test")
    with pytest.raises(PayoutConvertFrozen):
        book(shop)
    assert balances_of(shop) == {AVAILABLE: 10 * USDT}
    freezes.unfreeze("conversion")
    book(shop)
    assert balances_of(shop) == {}

"""The rules for every outgoing order, with the errors of its kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.addresses.evm import checksum_evm
from core.errors import (
    ComplianceAddressBlocked,
    DomainError,
    PayoutAddressNetworkMismatch,
    PayoutAmountBelowFee,
    PayoutAssetMismatch,
    PayoutBadAddress,
    PayoutBadAmount,
    PayoutDestinationInternal,
    PayoutFeeUnavailable,
    PayoutlinkBadAddress,
    PayoutlinkDestinationInternal,
    PayoutlinkFundsMaturing,
    PayoutlinkInsufficientFunds,
    PayoutMemoUnsupported,
    PayoutUnknownCurrency,
)
from core.ids import uuid7
from core.rates.pricing import Market
from models.db.base import execute
from models.ledger.ledger import MATURING
from models.payouts import order_checks
from models.payouts import queue as payout_queue
from models.payouts.order_checks import DestinationErrors
from tests.models.builders import CATALOGUE, merchant
from tests.models.invoices.builders import address
from tests.models.payouts.builders import RECIPIENT, USDT, fund

CHEQUE = DestinationErrors(
    bad=PayoutlinkBadAddress, mismatch=PayoutlinkBadAddress, internal=PayoutlinkDestinationInternal
)
SERVED = frozenset({"ethereum", "bsc"})
USDT_CONTRACT = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
USDC_CONTRACT = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
database = pytest.mark.usefixtures("database")


class Listed:
    """A deny list with one address."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    def blocks(self, address: str) -> bool:
        return address in self._addresses


def check(text: str, *, network: str = "ethereum", deny: Listed | None = None, **errors: Any) -> str:
    return order_checks.check_destination(CATALOGUE, deny or Listed(), network=network, address=text, **errors)


# Coin, network, amount --------------------------------------------------------------------------------------


def test_a_coins_only_network_may_be_left_out() -> None:
    pair = order_checks.choose_pair(CATALOGUE, SERVED, currency="ETH", network=None)

    assert (pair.currency, pair.network) == ("ETH", "ethereum")


@pytest.mark.parametrize(
    ("currency", "network", "error"),
    [
        ("USD", "ethereum", PayoutUnknownCurrency),
        ("usdt", "ethereum", PayoutUnknownCurrency),
        ("USDT", None, PayoutAssetMismatch),
        ("USDT", "", PayoutAssetMismatch),
        ("DAI", "bsc", PayoutAssetMismatch),
        ("USDT", "Ethereum", PayoutAssetMismatch),
        ("USDT", "polygon", PayoutAssetMismatch),
        ("BTC", None, PayoutAssetMismatch),
    ],
)
def test_an_unsupported_pair_is_refused(currency: str, network: str | None, error: type[DomainError]) -> None:
    with pytest.raises(error):
        order_checks.choose_pair(CATALOGUE, SERVED, currency=currency, network=network)


def test_amounts_are_read_in_ledger_units_and_have_a_minimum() -> None:
    pair = CATALOGUE.pairs["USDT", "ethereum"]
    least = order_checks.minimum_units(CATALOGUE, pair)

    assert order_checks.amount_units(CATALOGUE, "USDT", "0.5") == USDT // 2
    assert least == USDT // 2
    order_checks.check_minimum(CATALOGUE, pair, least)
    with pytest.raises(PayoutBadAmount):
        order_checks.check_minimum(CATALOGUE, pair, least - 1)
    for text in ("0", "0.0", "1.0000001", "1e3", "-1", "\u0661"):
        with pytest.raises(PayoutBadAmount):
            order_checks.amount_units(CATALOGUE, "USDT", text)


@given(chain_units=st.integers(0, 10**21))
def test_the_charged_fee_covers_the_chains_in_whole_units_of_the_coins_precision(chain_units: int) -> None:
    market = Market(rates={}, network_fees={("USDT", "bsc"): chain_units})

    fee = order_checks.fee_units(CATALOGUE, market, "USDT", "bsc")

    assert fee % 10**12 == 0
    assert chain_units <= fee < chain_units + 10**12


def test_an_unknown_fee_is_not_zero() -> None:
    market = Market(rates={}, network_fees={("USDT", "bsc"): 1})

    assert order_checks.known_fee_units(CATALOGUE, market, ("USDT", "ethereum")) is None
    with pytest.raises(PayoutFeeUnavailable):
        order_checks.fee_units(CATALOGUE, market, "USDT", "ethereum")


@given(amount=st.integers(1, 10**30), fee=st.integers(0, 10**30))
def test_the_hold_is_the_delivered_amount_and_the_fee(amount: int, fee: int) -> None:
    on_top = order_checks.amounts(amount, fee, is_fee_on_top=True)
    assert (on_top.to_units, on_top.held_units) == (amount, amount + fee)

    if amount <= fee:
        with pytest.raises(PayoutAmountBelowFee):
            order_checks.amounts(amount, fee, is_fee_on_top=False)
        return
    out_of = order_checks.amounts(amount, fee, is_fee_on_top=False)
    assert (out_of.to_units, out_of.held_units) == (amount - fee, amount)


def test_a_memo_is_accepted_only_on_networks_with_memos() -> None:
    for network in ("ton", "solana"):
        order_checks.check_memo_carried(CATALOGUE, network, "thanks")
    for network in ("ethereum", "tron", "bitcoin"):
        order_checks.check_memo_carried(CATALOGUE, network, "")
        order_checks.check_memo_carried(CATALOGUE, network, None)
        with pytest.raises(PayoutMemoUnsupported):
            order_checks.check_memo_carried(CATALOGUE, network, "thanks")


# Destinations -----------------------------------------------------------------------------------------------


@database
def test_a_destination_is_returned_in_its_stored_form() -> None:
    assert {check(text) for text in (RECIPIENT, RECIPIENT.lower(), "0x" + RECIPIENT[2:].upper())} == {RECIPIENT.lower()}


@database
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0x5290840009852788", PayoutBadAddress),
        (RECIPIENT.replace("EE7", "Ee7"), PayoutBadAddress),
        ("0x" + "0" * 40, PayoutBadAddress),
        (USDT_CONTRACT, PayoutBadAddress),
        (USDC_CONTRACT.lower(), PayoutBadAddress),
        ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", PayoutAddressNetworkMismatch),
    ],
)
def test_impossible_destinations_are_refused(text: str, error: type[DomainError]) -> None:
    with pytest.raises(error):
        check(text)


@database
def test_a_contract_of_another_network_is_a_valid_destination() -> None:
    assert check(USDT_CONTRACT, network="bsc") == USDT_CONTRACT.lower()


@database
@pytest.mark.parametrize("errors", [order_checks.PAYOUT_DESTINATION, CHEQUE])
def test_our_own_addresses_are_refused_on_every_network_of_their_family(errors: DestinationErrors) -> None:
    _, pooled = address()
    hot = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
    execute("INSERT INTO treasury_addresses (network, role, address) VALUES ('ethereum', 'hot', %s)", (hot,))

    for ours in (pooled, checksum_evm(pooled), hot, checksum_evm(hot)):
        for network in ("ethereum", "bsc"):
            with pytest.raises(errors.internal):
                check(ours, network=network, errors=errors)
    execute("DELETE FROM pool_addresses")
    assert check(pooled) == pooled


@database
def test_refusals_use_the_callers_own_errors() -> None:
    for text in ("nonsense", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"):
        with pytest.raises(PayoutlinkBadAddress):
            check(text, errors=CHEQUE)


@database
def test_a_listed_address_is_blocked_in_every_spelling() -> None:
    for text in (RECIPIENT, RECIPIENT.lower()):
        with pytest.raises(ComplianceAddressBlocked):
            check(text, deny=Listed(RECIPIENT.lower()))


@database
def test_a_recent_verdict_of_an_oracle_is_not_asked_for_again() -> None:
    for network, is_sanctioned in (("ethereum", True), ("bsc", False)):
        payout_queue.store_verdict(network, RECIPIENT.lower(), is_sanctioned=is_sanctioned)

    with pytest.raises(ComplianceAddressBlocked):
        check(RECIPIENT)
    assert check(RECIPIENT, network="bsc") == RECIPIENT.lower()
    execute("UPDATE sanction_verdicts SET checked_at = checked_at - interval '2 days'")
    assert check(RECIPIENT) == RECIPIENT.lower()


def test_payouts_use_the_default_error_codes() -> None:
    assert order_checks.PAYOUT_DESTINATION.internal is PayoutDestinationInternal


# Shortage ---------------------------------------------------------------------------------------------------


@database
@pytest.mark.parametrize(("wanted", "error"), [(12, PayoutlinkFundsMaturing), (13, PayoutlinkInsufficientFunds)])
def test_a_shortage_is_maturing_if_time_alone_covers_it(wanted: int, error: type[DomainError]) -> None:
    shop = merchant()
    fund(shop, 5 * USDT)
    fund(shop, 7 * USDT, kind=MATURING)
    fund(merchant(), 100 * USDT)

    with pytest.raises(error):
        order_checks.raise_shortage(
            shop, "USDT", wanted * USDT, insufficient=PayoutlinkInsufficientFunds, maturing=PayoutlinkFundsMaturing
        )


@database
def test_payout_terms_of_merchants_are_independent() -> None:
    shop, other = merchant(), merchant()

    order_checks.set_fee_on_top(shop, is_fee_on_top=False)

    assert order_checks.read_terms(shop) == order_checks.Terms(is_cosign_required=False, is_fee_on_top=False)
    assert order_checks.read_terms(other).is_fee_on_top
    with pytest.raises(LookupError):
        order_checks.read_terms(uuid7())

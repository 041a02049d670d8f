"""Turns a request into an invoice: missing fields get defaults, impossible requests are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from core.catalogue.catalogue import load_catalogue
from core.errors import (
    DomainError,
    InvoiceFeeQuoteFailed,
    InvoiceNoPayAsset,
    InvoiceQuoteFailed,
    PaymentBadAccuracy,
    PaymentBadAmount,
    PaymentBelowMinimum,
    PaymentUnsupportedNetwork,
)
from core.ids import uuid7
from core.invoices.schemas import CreatePayment
from core.rates.pricing import RATE_DIGITS, Market, Terms
from models.invoices.plan import Plan, plan_invoice, quote_by, quote_choice, quote_lifetime_s
from tests.core.rates import builders
from tests.models.builders import USDT, merchant
from tests.models.invoices.builders import invoice

CATALOGUE: Final = load_catalogue("development")
AVAILABLE: Final = frozenset({"ethereum", "bsc"})
RATES: Final = {"USD": 10**RATE_DIGITS, "USDT": 10**RATE_DIGITS, "ETH": 3000 * 10**RATE_DIGITS, "JPY": 10**16}
MARKET: Final = Market(rates=RATES, network_fees={("USDT", "ethereum"): USDT})
TERMS: Final = replace(builders.TERMS, version=3)
SHOP: Final = uuid7()


def planned(
    *, terms: Terms = TERMS, rates: Mapping[str, int] = RATES, available: frozenset[str] = AVAILABLE, **fields: Any
) -> Plan:
    body = {"amount": "10", "currency": "USD", "to_currency": "USDT", "network": "ethereum"} | fields
    return plan_invoice(
        CreatePayment(**body),
        merchant_id=SHOP,
        catalogue=CATALOGUE,
        terms=terms,
        market=replace(MARKET, rates=rates),
        available=available,
    )


def test_an_invoice_with_a_coin_has_its_quote() -> None:
    plan = planned()
    new = plan.invoice

    assert (plan.lifetime_s, plan.quote_s, plan.family) == (3600, 900, "evm")
    assert (new.merchant_id, new.status, new.is_multi, new.order_id) == (SHOP, "check", False, None)
    assert (new.price_currency, new.price_units) == ("USD", 1000)
    assert (new.pay_currency, new.network, new.payer_units, new.generation) == ("USDT", "ethereum", 10 * USDT, 1)
    assert (new.fee_ppm, new.fee_fixed_usd_cents, new.fee_fixed_units) == (15_000, 30, 3 * USDT // 10)
    assert (new.accuracy_ppm, new.discount_ppm, new.subtract_percent) == (0, 0, 0)
    assert (new.required_confirmations, new.address, new.address_ordinal) == (2, "", None)
    assert (new.theme, new.url_callback, new.additional_data, new.is_payment_multiple) == ("", None, "", False)


def test_an_agnostic_invoice_has_no_quote() -> None:
    plan = planned(to_currency=None, network=None)
    new = plan.invoice

    assert (plan.quote_s, plan.family) == (None, "")
    assert (new.status, new.is_multi, new.pay_currency, new.network) == ("select", True, None, None)
    assert (new.payer_units, new.fee_fixed_units, new.generation, new.fee_fixed_usd_cents) == (None, None, 0, 30)


def test_empty_texts_count_as_absent() -> None:
    new = planned(
        to_currency="", network="", order_id="", url_callback="", url_return="", additional_data="", theme=""
    ).invoice

    assert (new.status, new.order_id, new.url_callback, new.theme) == ("select", None, None, "")


def test_the_merchants_own_fields_are_kept() -> None:
    document = {
        "order_id": "o-1", "url_callback": "https://a.example/cb", "url_return": "https://a.example/r",
        "url_success": "https://a.example/s", "additional_data": "x", "payer_email": "b@c.example", "theme": "dark",
        "is_payment_multiple": True,
    }  # fmt: skip
    new = planned(**document).invoice

    assert {name: getattr(new, name) for name in document} == document


@pytest.mark.parametrize(
    ("asked", "given"),
    [(None, 3600), (-1, 300), (0, 300), (299, 300), (300, 300), (43_200, 43_200), (43_201, 43_200), (2**63, 43_200)],
)
def test_the_lifetime_is_clamped_to_its_bounds(asked: int | None, given: int) -> None:
    assert planned(lifetime=asked).lifetime_s == given


def test_the_gateways_times_are_for_requests_that_name_none_and_are_frozen() -> None:
    terms = replace(TERMS, lifetime_s=1800, quote_s=600)
    plan = planned(terms=terms)

    assert (plan.lifetime_s, plan.quote_s, plan.invoice.each_quote_s) == (1800, 600, 600)
    assert planned(terms=terms, lifetime=7200).lifetime_s == 7200
    agnostic = planned(terms=terms, to_currency=None, network=None).invoice
    assert quote_lifetime_s(agnostic, ("USDT", "ethereum")) == 600
    assert quote_lifetime_s(agnostic.but(quote_s=None), ("USDT", "ethereum")) == 900


def test_a_price_in_the_coin_itself_needs_no_later_quote() -> None:
    plan = planned(amount="1.000000000000000001", currency="ETH", to_currency="ETH")

    assert plan.quote_s is None
    assert plan.invoice.payer_units == plan.invoice.price_units == 10**18 + 1


@pytest.mark.parametrize(
    ("currency", "amount", "units"),
    [("USD", "0.01", 1), ("JPY", "5000", 5000), ("USDT", "1.000001", 1_000_001 * 10**12), ("ETH", "7", 7 * 10**18)],
)
def test_a_price_is_read_with_its_currencys_digits(currency: str, amount: str, units: int) -> None:
    assert planned(amount=amount, currency=currency, to_currency=None, network=None).invoice.price_units == units


@pytest.mark.parametrize(
    ("currency", "amount"),
    [("USD", "0"), ("USD", "0.00"), ("USD", "1.001"), ("JPY", "1.5"), ("JPY", "1.05"), ("USDT", "1.0000001"),
     ("USD", "-1"), ("USD", "1e3"), ("USD", "1_0"), ("USD", "10000000.01")],
)  # fmt: skip
@pytest.mark.parametrize("method", [("USDT", "ethereum"), (None, None)], ids=["chosen", "agnostic"])
def test_a_bad_price_is_refused(currency: str, amount: str, method: tuple[str | None, str | None]) -> None:
    with pytest.raises(PaymentBadAmount):
        planned(amount=amount, currency=currency, to_currency=method[0], network=method[1])


@pytest.mark.parametrize(
    ("accuracy", "merchants", "ppm"),
    [(None, None, 0), (None, 20_000, 20_000), (0, 20_000, 0), (0.3, 20_000, 3000), (5, None, 50_000)],
)
def test_the_tolerance_is_the_invoices_own_or_the_merchants(
    accuracy: float | None, merchants: int | None, ppm: int
) -> None:
    terms = replace(TERMS, accuracy_ppm=merchants)

    assert planned(accuracy_payment_percent=accuracy, terms=terms).invoice.accuracy_ppm == ppm


@pytest.mark.parametrize("accuracy", [5.0001, -0.1, 0.00001, float("nan"), float("inf")])
def test_a_bad_tolerance_is_refused(accuracy: float) -> None:
    with pytest.raises(PaymentBadAccuracy):
        planned(accuracy_payment_percent=accuracy)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"terms": replace(TERMS, accepted=frozenset({("ETH", "ethereum")}))}, PaymentUnsupportedNetwork,
                     id="a coin that the merchant does not accept"),
        pytest.param({"terms": replace(TERMS, accepted=frozenset()), "to_currency": None, "network": None},
                     InvoiceNoPayAsset, id="no coin at all"),
        pytest.param({"available": frozenset({"bsc"})}, PaymentUnsupportedNetwork, id="a network without provider"),
        pytest.param({"amount": "0.99"}, PaymentBelowMinimum, id="below the minimum"),
        pytest.param({"rates": {}}, InvoiceQuoteFailed, id="no rates"),
        pytest.param({"rates": {}, "to_currency": None, "network": None}, InvoiceQuoteFailed, id="nor without a coin"),
        pytest.param({"rates": {}, "currency": "ETH", "to_currency": "ETH"}, InvoiceFeeQuoteFailed,
                     id="no rate for the fixed fee"),
        pytest.param({"subtract": 10, "network": "bsc"}, InvoiceQuoteFailed, id="no network fee to take a part of"),
    ],
)  # fmt: skip
def test_an_impossible_invoice_is_refused_with_its_reason(fields: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        planned(**fields)


def test_limits_apply_to_the_owed_sum() -> None:
    terms = replace(TERMS, discounts_ppm={("USDT", "ethereum"): 500_000})

    assert planned(amount="20000000", terms=terms).invoice.payer_units == 10_000_000 * USDT
    with pytest.raises(PaymentBelowMinimum):
        planned(amount="1.99", terms=terms)


@pytest.mark.usefixtures("database")
def test_later_quotes_keep_the_fixed_fee_and_discount() -> None:
    """The fixed fee is frozen at creation; the discount at the first quote."""
    mine = invoice(merchant(), discount_ppm=100_000)
    dearer = replace(TERMS, fee_fixed_usd_cents=99, discounts_ppm={("USDT", "ethereum"): 200_000})

    again = quote_by(CATALOGUE, MARKET, mine)
    choice = quote_choice(CATALOGUE, MARKET, mine, ("USDT", "ethereum"), dearer)

    assert (again.payer_units, again.fee_fixed_units, again.discount_ppm) == (9 * USDT, 3 * USDT // 10, 100_000)
    assert (choice.payer_units, choice.fee_fixed_units, choice.discount_ppm) == (8 * USDT, 3 * USDT // 10, 200_000)


@pytest.mark.usefixtures("database")
def test_a_later_quote_is_not_checked_against_limits() -> None:
    mine = invoice(merchant(), price_units=50)

    assert quote_by(CATALOGUE, MARKET, mine).payer_units == USDT // 2
    with pytest.raises(PaymentBelowMinimum):
        quote_choice(CATALOGUE, MARKET, mine, ("USDT", "ethereum"), TERMS)

"""Plans the invoice that a merchant's request asks for: modes, price, quote, terms.

Pure; called by actors.invoices.calls.
Source: API reference, "Invoices" and "Payments".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from core.catalogue import hints
from core.catalogue.catalogue import Catalogue, Network
from core.errors import PaymentBadAccuracy, PaymentBadAmount, PaymentUnsupportedNetwork
from core.ids import uuid7
from core.invoices.schemas import CreatePayment
from core.merchants.terms_rules import accuracy_ppm
from core.money import parse_units, rescale
from core.rates import pricing
from core.rates.pricing import Market, Method, Price, Quote, Terms
from models.invoices.rows import InvoiceRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An invoice that lacks only its address and its moments."""

    invoice: InvoiceRow
    lifetime_s: int
    # How long its quote holds; None where the price needs no rate or no coin is chosen yet.
    quote_s: int | None
    # The network that it needs an address on; None without a coin.
    network: Network | None

    @property
    def family(self) -> str:
        """Return the address family that it needs an address of; "" without a coin."""
        return "" if self.network is None else self.network.family


def plan_invoice(
    body: CreatePayment,
    *,
    merchant_id: UUID,
    catalogue: Catalogue,
    terms: Terms,
    market: Market,
    available: frozenset[str],
    link_id: UUID | None = None,
) -> Plan:
    """Decide everything about a new invoice, or raise the payment.* or invoice.* error that forbids it.

    link_id: the payment link that it is checked out by.
    """
    method = pricing.choose_method(
        catalogue,
        currency=body.currency,
        to_currency=body.to_currency or None,
        network=body.network or None,
        available=available,
    )
    methods = pricing.acceptable_methods(catalogue, terms, available)
    if method is None:
        pricing.require_acceptable(methods)
    elif method not in methods:
        served = [network for coin, network in methods if coin == method[0]]
        raise PaymentUnsupportedNetwork(hints.unoffered(catalogue, *method, served))
    price = _price(catalogue, body)
    invoice = _agnostic(body, merchant_id, price, terms, link_id)
    lifetime_s = body.lifetime_s(terms.lifetime_s)
    if method is None:
        pricing.check_price(catalogue, market, price, max_usd=terms.price_max_usd)
        pricing.require_payable(
            catalogue, market, methods, price=price, terms=terms, subtract_percent=invoice.subtract_percent
        )
        return Plan(invoice=invoice, lifetime_s=lifetime_s, quote_s=None, network=None)
    quote = pricing.quote(
        catalogue, market, price=price, method=method, terms=terms, subtract_percent=invoice.subtract_percent
    )
    columns = chosen(catalogue, method, quote, generation=1)
    return Plan(
        invoice=invoice.but(status="check", is_multi=False, **columns),
        lifetime_s=lifetime_s,
        quote_s=quote_lifetime_s(invoice, method),
        network=catalogue.networks[method[1]],
    )


def payable_methods(
    catalogue: Catalogue, market: Market, invoice: InvoiceRow, methods: Iterable[Method], terms: Terms
) -> list[Method]:
    """Return those of some methods that can carry an invoice's price, by the discounts and rates of this moment."""
    return pricing.payable_methods(
        catalogue,
        market,
        methods,
        price=pricing.Price(currency=invoice.price_currency, units=invoice.price_units),
        terms=replace(terms, fee_fixed_usd_cents=invoice.fee_fixed_usd_cents),
        subtract_percent=invoice.subtract_percent,
    )


def quote_choice(catalogue: Catalogue, market: Market, invoice: InvoiceRow, method: Method, terms: Terms) -> Quote:
    """Price a buyer's choice of coin: the discount is of this moment, the fee of the invoice's creation."""
    return pricing.quote(
        catalogue,
        market,
        price=pricing.Price(currency=invoice.price_currency, units=invoice.price_units),
        method=method,
        terms=replace(terms, fee_fixed_usd_cents=invoice.fee_fixed_usd_cents),
        subtract_percent=invoice.subtract_percent,
    )


def quote_by(catalogue: Catalogue, market: Market, invoice: InvoiceRow) -> Quote:
    """Price an invoice in the coin it has; discount and fee are those it began with, whatever the terms are now."""
    return pricing.quote(
        catalogue,
        market,
        price=pricing.Price(currency=invoice.price_currency, units=invoice.price_units),
        method=method_of(invoice),
        terms=_terms_of(invoice),
        subtract_percent=invoice.subtract_percent,
        discount_ppm=invoice.discount_ppm,
        is_limited=False,
    )


def _terms_of(invoice: InvoiceRow) -> Terms:
    """Return the terms that an invoice has kept. Its price is not limited again."""
    return Terms(
        version=0,
        fee_ppm=invoice.fee_ppm,
        fee_fixed_usd_cents=invoice.fee_fixed_usd_cents,
        accuracy_ppm=invoice.accuracy_ppm,
        accepted=None,
        discounts_ppm={},
        price_max_usd=0,
        lifetime_s=0,
        quote_s=invoice.each_quote_s,
    )


def series_of(invoice: InvoiceRow) -> list[tuple[str, str]]:
    """Return the rates, as (coin, ""), and the network fee, as (coin, network), by which an invoice is priced."""
    coin, network = method_of(invoice)
    rates = [(invoice.price_currency, ""), (coin, "")]
    return [*rates, (coin, network)] if invoice.subtract_percent else rates


def method_of(invoice: InvoiceRow) -> Method:
    """Return the coin and network of an invoice that has them."""
    if invoice.pay_currency is None or invoice.network is None:
        raise ValueError(f"no coin is chosen for invoice {invoice.id}")
    return invoice.pay_currency, invoice.network


def quote_lifetime_s(invoice: InvoiceRow, method: Method) -> int | None:
    """Return how long a quote holds; None if price and settlement are the same coin and no rate is involved."""
    return None if invoice.price_currency == method[0] else invoice.each_quote_s


def chosen(catalogue: Catalogue, method: Method, quote: Quote, *, generation: int) -> dict[str, Any]:
    """Return the columns that a chosen coin fixes, but for the address."""
    return {
        "pay_currency": method[0],
        "network": method[1],
        "payer_units": quote.payer_units,
        "fee_fixed_units": quote.fee_fixed_units,
        "discount_ppm": quote.discount_ppm,
        "generation": generation,
        "required_confirmations": catalogue.networks[method[1]].confirmations,
    }


def _price(catalogue: Catalogue, body: CreatePayment) -> Price:
    """Read the price: fiat in its minor units, coins in the ledger's scale but no finer than their precision."""
    digits = catalogue.digits(body.currency)
    units = parse_units(body.amount, digits=digits, error=PaymentBadAmount)
    if units == 0:
        raise PaymentBadAmount("amount must be above zero.")
    return pricing.Price(
        currency=body.currency, units=rescale(units, digits, pricing.price_digits(catalogue, body.currency))
    )


def _agnostic(body: CreatePayment, merchant_id: UUID, price: Price, terms: Terms, link_id: UUID | None) -> InvoiceRow:
    """Return the invoice as it is before a coin is chosen."""
    return InvoiceRow(
        id=uuid7(),
        merchant_id=merchant_id,
        order_id=body.order_id or None,
        status="select",
        is_multi=True,
        price_currency=price.currency,
        price_units=price.units,
        accuracy_ppm=_accuracy(body.accuracy_payment_percent, terms),
        subtract_percent=body.subtract or 0,
        fee_ppm=terms.fee_ppm,
        fee_fixed_usd_cents=terms.fee_fixed_usd_cents,
        url_callback=body.url_callback or None,
        url_return=body.url_return or "",
        url_success=body.url_success or "",
        additional_data=body.additional_data or "",
        payer_email=body.payer_email or "",
        theme=body.theme or "",
        is_payment_multiple=bool(body.is_payment_multiple),
        link_id=link_id,
        quote_s=terms.quote_s,
    )


def _accuracy(percent: float | None, terms: Terms) -> int:
    """Return the tolerance: the invoice's own (0 included), else the merchant's, else none."""
    if percent is None:
        return terms.accuracy_ppm or 0
    return accuracy_ppm(percent, error=PaymentBadAccuracy, name="accuracy_payment_percent")

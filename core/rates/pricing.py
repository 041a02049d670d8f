"""Converts a price into the payer's amount, and a credit into its parts.

Pure; called by actors.invoices.calls and settlement.
Rates are US dollars per unit of a currency, as integers scaled by 10**RATE_DIGITS. Source: API reference, "Payment
(invoice) object" and "Quotes".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from core import errors
from core.catalogue import hints
from core.catalogue.catalogue import Catalogue, Pair
from core.money import PPM, mul_div_down, mul_div_up, quote_step, round_up

RATE_DIGITS: Final = 18
CENTS: Final = 100
PERCENT: Final = 100

Rates = Mapping[str, int]
Method = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardTerms:
    """The gateway's terms: fees and tolerance of merchants without their own, the largest price, and times."""

    fee_ppm: int
    fee_fixed_usd_cents: int
    price_max_usd: int
    # 0: no tolerance.
    accuracy_ppm: int
    # How long an invoice lives that asks for no time, and how long each of its quotes holds.
    lifetime_s: int
    quote_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A merchant's terms, frozen into each invoice. version counts their changes."""

    version: int
    fee_ppm: int
    fee_fixed_usd_cents: int
    # None: no tolerance, unless an invoice sets one.
    accuracy_ppm: int | None
    # None: every available method.
    accepted: frozenset[Method] | None
    # Positive lowers the price, negative raises it.
    discounts_ppm: Mapping[Method, int]
    # The gateway's limit and times, the same for all merchants.
    price_max_usd: int
    lifetime_s: int
    quote_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A merchant's price, in minor units of a fiat currency or the ledger's units of a coin."""

    currency: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """The quotes that pricing reads, all of one moment."""

    rates: Rates
    # The cost of one payout of a pair on chain, in the ledger's units.
    network_fees: Mapping[Method, int]
    # The whole cost of a sweep of a pair, in the ledger's units.
    sweep_fees: Mapping[Method, int] = field(default_factory=dict)
    # Rates on which enough sources agree now. The others serve for prices, not for trades.
    conversion_rates: Rates = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The payer's amount and the fixed fee, in the ledger's units of the settlement coin."""

    payer_units: int
    fee_fixed_units: int
    discount_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedCredit:
    """The four parts of a deposit's amount, which add up to it."""

    net_units: int
    fee_units: int
    fee_fixed_units: int
    rounding_units: int


def choose_method(
    catalogue: Catalogue, *, currency: str, to_currency: str | None, network: str | None, available: frozenset[str]
) -> Method | None:
    """Return the settlement method that a request names, or None for a currency-agnostic invoice.

    available: the networks that this gateway serves. Raises the payment.* error of the mode table.
    """
    if not catalogue.is_pricing_currency(currency):
        raise errors.PaymentUnknownCurrency(hints.unknown_currency(catalogue, currency))
    if to_currency is None:
        if network is None:
            return None
        if currency in catalogue.fiats:
            raise errors.PaymentToCurrencyRequired
        to_currency = currency
    elif to_currency not in catalogue.assets:
        raise errors.PaymentUnknownToCurrency(hints.unknown_coin(catalogue, to_currency, name="to_currency"))
    if network is None:
        network = only_network(catalogue, to_currency)
        if network is None:
            raise errors.PaymentNetworkRequired(hints.network_needed(catalogue, to_currency, available))
    if catalogue.pair(to_currency, network) is None or network not in available:
        raise errors.PaymentUnsupportedNetwork(hints.unoffered(catalogue, to_currency, network, available))
    return to_currency, network


def only_network(catalogue: Catalogue, currency: str) -> str | None:
    """Return the network of a coin that has exactly one."""
    networks = catalogue.networks_of(currency)
    return networks[0] if len(networks) == 1 else None


def acceptable_methods(catalogue: Catalogue, terms: Terms, available: frozenset[str]) -> list[Method]:
    """Return the methods of some networks that a merchant accepts, in the catalogue's order."""
    return offered_methods(catalogue, terms.accepted, {method for method in catalogue.pairs if method[1] in available})


def offered_methods(
    catalogue: Catalogue, accepted: Collection[Method] | None, usable: Collection[Method]
) -> list[Method]:
    """Return the usable methods that a merchant accepts, in the catalogue's order. accepted: None for all."""
    return [method for method in catalogue.pairs if method in usable and (accepted is None or method in accepted)]


def require_acceptable(methods: list[Method]) -> None:
    """Refuse an agnostic invoice that no coin could pay."""
    if not methods:
        raise errors.InvoiceNoPayAsset


def rate_of(rates: Rates, currency: str) -> int:
    """Return the dollar price of a currency. Raises invoice.quote_failed if it is absent: that never counts as 1."""
    rate = rates.get(currency)
    if not rate:
        raise errors.InvoiceQuoteFailed
    return rate


def usd_cents(units: int, *, rate: int, scale: int, up: bool = False) -> int:
    """Return the worth of an amount in US cents, rounded down. up: round up, if it must not seem small."""
    rounded = mul_div_up if up else mul_div_down
    return rounded(units, rate * CENTS, 10 ** (scale + RATE_DIGITS))


def units_worth(usd_cents: int, *, rate: int, scale: int) -> int:
    """Return the units of a coin that are worth an amount of US cents, rounded down."""
    return mul_div_down(usd_cents, 10 ** (scale + RATE_DIGITS), rate * CENTS)


def quote(
    catalogue: Catalogue,
    market: Market,
    *,
    price: Price,
    method: Method,
    terms: Terms,
    subtract_percent: int,
    discount_ppm: int | None = None,
    is_limited: bool = True,
) -> Quote:
    """Price an invoice in its settlement coin, within the pair's limits.

    discount_ppm: an earlier quote's discount, which later quotes keep. is_limited: False for later quotes, whose sale
    is open. Raises payment.below_minimum, payment.bad_amount, invoice.quote_failed, invoice.fee_quote_failed.
    """
    currency, network = method
    pair = catalogue.pair(currency, network)
    if pair is None:
        raise errors.PaymentUnsupportedNetwork
    if discount_ppm is None:
        discount_ppm = terms.discounts_ppm.get(method, 0)
    payer_units = _converted(catalogue, market.rates, price, currency, discount_ppm)
    payer_units += _surcharge(market, method, subtract_percent)
    if price.currency != currency or discount_ppm or subtract_percent:
        payer_units = round_up(payer_units, _step(catalogue, price, currency))
    # Before the limits: if price and coin are the same, the fee is the first to need a rate.
    fee_fixed_units = _fixed_fee(catalogue, market.rates, currency, terms.fee_fixed_usd_cents)
    if is_limited:
        _check_limits(catalogue, market.rates, pair, payer_units, max_usd=terms.price_max_usd)
    return Quote(payer_units=payer_units, fee_fixed_units=fee_fixed_units, discount_ppm=discount_ppm)


def payable_methods(
    catalogue: Catalogue,
    market: Market,
    methods: Iterable[Method],
    *,
    price: Price,
    terms: Terms,
    subtract_percent: int = 0,
) -> list[Method]:
    """Return the methods that can carry a price, in their order. A method without rates counts as able."""
    refusal = partial(_refusal, catalogue, market, price, terms, subtract_percent)
    return [method for method in methods if refusal(method) is None]


def require_payable(
    catalogue: Catalogue,
    market: Market,
    methods: Iterable[Method],
    *,
    price: Price,
    terms: Terms,
    subtract_percent: int = 0,
) -> None:
    """Refuse a price that none of the methods can carry. A method without rates counts as able.

    Raises payment.below_minimum, payment.bad_amount.
    """
    refusal: errors.DomainError | None = None
    for method in methods:
        refusal = _refusal(catalogue, market, price, terms, subtract_percent, method)
        if refusal is None:
            return
    if refusal is not None:
        raise refusal


def _refusal(
    catalogue: Catalogue, market: Market, price: Price, terms: Terms, subtract_percent: int, method: Method
) -> errors.DomainError | None:
    """Return the error for a price that a method cannot carry; None if it can, or if rates are missing."""
    try:
        quote(catalogue, market, price=price, method=method, terms=terms, subtract_percent=subtract_percent)
    except (errors.PaymentBelowMinimum, errors.PaymentBadAmount) as refusal:
        return refusal
    except (errors.InvoiceQuoteFailed, errors.InvoiceFeeQuoteFailed):
        return None
    return None


def check_price(catalogue: Catalogue, market: Market, price: Price, *, max_usd: int) -> None:
    """Refuse a price above the gateway's limit. For invoices without a coin whose amount could be compared."""
    digits = price_digits(catalogue, price.currency)
    if price.units * rate_of(market.rates, price.currency) > max_usd * 10 ** (digits + RATE_DIGITS):
        raise errors.PaymentBadAmount("The amount is above the limit of this gateway.")


def price_digits(catalogue: Catalogue, currency: str) -> int:
    """Return the digits of stored prices in a currency: fiat minor units, or the ledger's scale."""
    return catalogue.digits(currency) if currency in catalogue.fiats else catalogue.scale(currency)


def _converted(catalogue: Catalogue, rates: Rates, price: Price, currency: str, discount_ppm: int) -> int:
    if price.currency == currency:
        return mul_div_up(price.units, PPM - discount_ppm, PPM)
    numerator = (PPM - discount_ppm) * rate_of(rates, price.currency) * 10 ** catalogue.scale(currency)
    denominator = PPM * 10 ** price_digits(catalogue, price.currency) * rate_of(rates, currency)
    return mul_div_up(price.units, numerator, denominator)


def _surcharge(market: Market, method: Method, subtract_percent: int) -> int:
    if not subtract_percent:
        return 0
    fee_units = market.network_fees.get(method)
    if fee_units is None:
        raise errors.InvoiceQuoteFailed
    return mul_div_up(fee_units, subtract_percent, PERCENT)


def _step(catalogue: Catalogue, price: Price, currency: str) -> int:
    asset = catalogue.assets[currency]
    if price.currency == currency:
        return int(10 ** (asset.scale - asset.precision))
    return quote_step(scale=asset.scale, precision=asset.precision)


def _check_limits(catalogue: Catalogue, rates: Rates, pair: Pair, payer_units: int, *, max_usd: int) -> None:
    if payer_units < catalogue.smallest_deposit(pair):
        raise errors.PaymentBelowMinimum
    if payer_units * rate_of(rates, pair.currency) > max_usd * 10 ** (catalogue.scale(pair.currency) + RATE_DIGITS):
        raise errors.PaymentBadAmount("The amount is above the limit of this gateway.")


def _fixed_fee(catalogue: Catalogue, rates: Rates, currency: str, usd_cents: int) -> int:
    if not usd_cents:
        return 0
    rate = rates.get(currency)
    if not rate:
        raise errors.InvoiceFeeQuoteFailed
    return units_worth(usd_cents, rate=rate, scale=catalogue.scale(currency))


def divide_credit(*, units: int, fee_ppm: int, fee_fixed_due_units: int, step: int) -> DividedCredit:
    """Divide a deposit between merchant, fees and rounding.

    step: the ledger units in one unit of the coin's precision; the merchant gets whole steps. Fees round down and
    never exceed the credit.
    """
    fee_units = mul_div_down(units, fee_ppm, PPM)
    fixed_units = min(fee_fixed_due_units, units - fee_units)
    left = units - fee_units - fixed_units
    net_units = left - left % step
    return DividedCredit(
        net_units=net_units, fee_units=fee_units, fee_fixed_units=fixed_units, rounding_units=left - net_units
    )


def fee_in_coin(catalogue: Catalogue, rates: Rates, *, gas_units: int, gas_currency: str, currency: str) -> int:
    """Express a network fee, paid in the chain's own coin, in the ledger's units of another; rounded up."""
    if gas_currency == currency:
        return gas_units
    numerator = rate_of(rates, gas_currency) * 10 ** catalogue.scale(currency)
    return mul_div_up(gas_units, numerator, rate_of(rates, currency) * 10 ** catalogue.scale(gas_currency))

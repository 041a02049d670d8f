"""Reads the amounts of payment links and of their buyers, in the units that prices are kept in.

Pure; called by actors.payment_links. Source: API reference, "Payment links".
"""

from __future__ import annotations

from dataclasses import dataclass

from core import errors
from core.catalogue import hints
from core.catalogue.catalogue import Catalogue
from core.money import parse_units, rescale
from core.payment_links.schemas import AmountMode, CreatePaymentLink, read_amount
from core.rates.pricing import Price, price_digits
from core.texts.render import price_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a link's amount, in the units of its currency's prices: a price, or the least and the most."""

    mode: AmountMode
    currency: str
    fixed_units: int | None = None
    min_units: int | None = None
    max_units: int | None = None

    @property
    def highest(self) -> Price | None:
        """Return the price, or the highest that a buyer may name; None for no limit."""
        units = self.fixed_units if self.fixed_units is not None else self.max_units
        return None if units is None else Price(currency=self.currency, units=units)


def read_bounds(catalogue: Catalogue, body: CreatePaymentLink) -> Bounds:
    """Return what a new link asks. Raises paylink.unknown_currency, .bad_amount, .bad_min, .bad_max, .bad_range."""
    if not catalogue.is_pricing_currency(body.currency):
        raise errors.PaylinkUnknownCurrency(hints.unknown_currency(catalogue, body.currency))

    def positive(text: str | None, error: type[errors.DomainError], name: str) -> int | None:
        return None if text is None else _positive(catalogue, body.currency, text, error=error, name=name)

    bounds = Bounds(
        mode=body.amount_mode,
        currency=body.currency,
        fixed_units=positive(body.amount_fixed, errors.PaylinkBadAmount, "amount_fixed"),
        min_units=positive(body.amount_min, errors.PaylinkBadMin, "amount_min"),
        max_units=positive(body.amount_max, errors.PaylinkBadMax, "amount_max"),
    )
    if bounds.max_units is not None and (bounds.min_units or 0) > bounds.max_units:
        raise errors.PaylinkBadRange
    return bounds


def buyers_price(catalogue: Catalogue, bounds: Bounds, amount: object) -> str:
    """Return what a buyer pays, as a decimal string: the link's price, or what he names within its bounds.

    Raises paylink.amount_required, .not_positive, .below_min, .above_max.
    """
    units = bounds.fixed_units
    if units is None:
        units = _named(catalogue, bounds, amount)
    return price_text(catalogue, bounds.currency, units)


def _named(catalogue: Catalogue, bounds: Bounds, amount: object) -> int:
    if amount is None:
        raise errors.PaylinkAmountRequired
    text = read_amount(amount, error=errors.PaylinkNotPositive)
    units = _positive(catalogue, bounds.currency, text, error=errors.PaylinkNotPositive, name="amount")
    if bounds.min_units is not None and units < bounds.min_units:
        raise errors.PaylinkBelowMin
    if bounds.max_units is not None and units > bounds.max_units:
        raise errors.PaylinkAboveMax
    return units


def _positive(catalogue: Catalogue, currency: str, text: str, *, error: type[errors.DomainError], name: str) -> int:
    digits = catalogue.digits(currency)
    units = parse_units(text, digits=digits, error=error, name=name)
    if not units:
        raise error(f"{name} must be above zero.")
    return rescale(units, digits, price_digits(catalogue, currency))

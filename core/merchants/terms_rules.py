"""Makes terms of what a merchant asks for, and what a merchant is shown of terms.

Pure; called by actors.merchants.terms and actors.merchants.splits.
Source: API reference, "Payments".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from core import errors
from core.catalogue import hints
from core.catalogue.catalogue import Catalogue
from core.merchants.terms_schemas import (
    ACCURACY_MAX_PERCENT,
    DISCOUNT_MAX_PERCENT,
    AcceptedMethod,
    AcceptedMethods,
    Accuracy,
    Discount,
    Discounts,
    MethodName,
)
from core.money import PPM, PPM_PER_PERCENT, Refusal, parse_percent_ppm
from core.rates.pricing import Method, only_network

ACCURACY_MIN_PPM: Final = PPM_PER_PERCENT
ACCURACY_MAX_PPM: Final = ACCURACY_MAX_PERCENT * PPM_PER_PERCENT
# A share is from one of its steps, 0.01 percent, to all.
SPLIT_DIGITS: Final = 2
SPLIT_STEP_PPM: Final = PPM_PER_PERCENT // 10**SPLIT_DIGITS
DISCOUNT_MAX_PPM: Final = DISCOUNT_MAX_PERCENT * PPM_PER_PERCENT


def accepted_methods(catalogue: Catalogue, names: Iterable[MethodName]) -> frozenset[Method]:
    """Return the methods that a merchant names, or raise accepted.unknown_method."""
    return frozenset(_method(catalogue, name) for name in names)


def _method(catalogue: Catalogue, name: MethodName) -> Method:
    network = name.network or only_network(catalogue, name.currency)
    if network is None or catalogue.pair(name.currency, network) is None:
        raise errors.AcceptedUnknownMethod(f"{name.currency} on {network or 'no network'} is not in the catalogue.")
    return name.currency, network


def named_methods(catalogue: Catalogue, *, currency: str | None, network: str | None) -> frozenset[Method]:
    """Return the methods of a coin, of a network or of both, or raise the payment.* error of what is unknown."""
    if currency is not None and currency not in catalogue.assets:
        raise errors.PaymentUnknownCurrency(hints.unknown_coin(catalogue, currency))
    named = frozenset(
        method for method in catalogue.pairs if currency in {None, method[0]} and network in {None, method[1]}
    )
    if not named:
        raise errors.PaymentUnsupportedNetwork
    return named


def discount_ppm(percent: float) -> int:
    """Read a discount, or raise discount.bad_percent."""
    return parse_percent_ppm(
        percent,
        lo_ppm=-DISCOUNT_MAX_PPM,
        hi_ppm=DISCOUNT_MAX_PPM,
        error=errors.DiscountBadPercent,
        name="discount_percent",
    )


def accuracy_ppm(percent: float, *, error: Refusal = errors.AccuracyBadPercent, name: str = "accuracy_percent") -> int:
    """Read a tolerance that need not be in force, or raise accuracy.bad_percent or another error."""
    return parse_percent_ppm(percent, lo_ppm=0, hi_ppm=ACCURACY_MAX_PPM, error=error, name=name)


def split_ppm(percent: float) -> int:
    """Read a share, or raise split.bad_percent."""
    return parse_percent_ppm(
        percent, lo_ppm=SPLIT_STEP_PPM, hi_ppm=PPM, error=errors.SplitBadPercent, digits=SPLIT_DIGITS
    )


def check_accuracy(*, enabled: bool, ppm: int | None) -> None:
    """Raise accuracy.bad_percent if an enabled tolerance is unset or under 1 percent."""
    if enabled and (ppm is None or ppm < ACCURACY_MIN_PPM):
        raise errors.AccuracyBadPercent


def percent_number(ppm: int) -> float:
    """Return parts per million as the number of percent that JSON shows: 15000 is 1.5, 50000 is 5."""
    whole, rest = divmod(ppm, PPM_PER_PERCENT)
    return ppm / PPM_PER_PERCENT if rest else whole


def show_accepted(accepted: Collection[Method] | None) -> AcceptedMethods:
    """Return the answer about accepted methods. accepted: None for all."""
    return AcceptedMethods(
        accepted=[AcceptedMethod(currency=currency, network=network) for currency, network in sorted(accepted or ())]
    )


def show_discounts(discounts_ppm: Mapping[Method, int], among: Collection[Method]) -> Discounts:
    """Return the answer about the discounts of some methods."""
    return Discounts(
        items=[
            Discount(currency=method[0], network=method[1], discount_percent=percent_number(ppm))
            for method, ppm in sorted(discounts_ppm.items())
            if method in among
        ]
    )


def show_accuracy(*, enabled: bool, ppm: int | None) -> Accuracy:
    """Return the answer about the tolerance."""
    return Accuracy(enabled=enabled, accuracy_percent=percent_number(ppm or 0))

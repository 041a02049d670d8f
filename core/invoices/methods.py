"""Renders the methods that a merchant can use, with their limits and fees. Source: API reference, "Payments"."""

from __future__ import annotations

from typing import Any

from core.catalogue.catalogue import Catalogue, Pair
from core.merchants.terms_rules import percent_number
from core.money import CENT_DIGITS, PPM_DIGITS, format_coin, format_fiat, mul_div_down
from core.rates.pricing import RATE_DIGITS, Market, Method, Terms


def payment_methods(
    catalogue: Catalogue, terms: Terms, market: Market, usable: frozenset[Method]
) -> list[dict[str, Any]]:
    """Return the items of POST /v1/payment/services, in the catalogue's order."""
    return [
        _method(catalogue, pair, terms, market, usable=method in usable) for method, pair in catalogue.pairs.items()
    ]


def _method(catalogue: Catalogue, pair: Pair, terms: Terms, market: Market, *, usable: bool) -> dict[str, Any]:
    scale = catalogue.scale(pair.currency)
    rate = market.rates.get(pair.currency)
    return {
        "currency": pair.currency,
        "network": pair.network,
        "is_available": usable,
        "limit": {
            "min_amount": format_coin(pair.min_deposit_units, pair.decimals),
            "max_amount": format_coin(_max_units(terms, rate, scale, catalogue.digits(pair.currency)), scale)
            if rate
            else None,
        },
        "commission": {
            "percent": percent_text(terms.fee_ppm),
            "fixed_usd": format_fiat(terms.fee_fixed_usd_cents, CENT_DIGITS),
        },
        "confirmations": catalogue.networks[pair.network].confirmations,
        "discount_percent": percent_number(terms.discounts_ppm.get((pair.currency, pair.network), 0)),
    }


def percent_text(ppm: int) -> str:
    """Return parts per million as percent: 15000 is 1.5."""
    return format_coin(ppm, PPM_DIGITS)


def _max_units(terms: Terms, rate: int, scale: int, precision: int) -> int:
    """Return the most that a payer may owe, in whole steps of the coin's precision."""
    units = mul_div_down(terms.price_max_usd, 10 ** (scale + RATE_DIGITS), rate)
    step: int = 10 ** (scale - precision)
    return units - units % step

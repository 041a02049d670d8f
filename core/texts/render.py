"""Renders moments and amounts: API answers, webhook bodies and pages show them by the same rules.

Source: API reference, "Resources and their fields".
"""

from __future__ import annotations

from datetime import UTC, datetime

from core.catalogue.catalogue import Catalogue
from core.money import format_coin, format_fiat


def iso_time(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with milliseconds, as the database function of that name does."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def price_text(catalogue: Catalogue, currency: str, units: int) -> str:
    """Return a price as text: fiat padded to its digits, coins without trailing zeros."""
    if currency in catalogue.fiats:
        return format_fiat(units, catalogue.digits(currency))
    return format_coin(units, catalogue.scale(currency))


def coin_text(catalogue: Catalogue, currency: str | None, units: int | None) -> str:
    """Write an amount of the settlement coin; empty before one is chosen."""
    if currency is None or units is None:
        return ""
    return format_coin(units, catalogue.scale(currency))

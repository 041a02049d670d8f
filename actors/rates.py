"""Keeps the rates fresh. Development alone takes them from a static table, and says so. Rung by the scheduler."""

from __future__ import annotations

from decimal import Decimal
from importlib import resources
from typing import Final

import msgspec
import structlog

from actors.broker import doorbell
from actors.context import context
from models import rates
from models.base import transaction

log = structlog.get_logger()

STATIC_TABLE: Final = "development_rates.json"


class UnknownRatesSourceError(Exception):
    """No source of that name; settings admit none such."""


def static_rates() -> dict[str, Decimal]:
    """Return the table that development prices with: US dollars per unit."""
    text = resources.files("core").joinpath(STATIC_TABLE).read_bytes()
    return {currency: Decimal(usd) for currency, usd in msgspec.json.decode(text, type=dict[str, str]).items()}


@doorbell(queue="maintenance")
def refresh_rates() -> None:
    """Write every currency's rate anew."""
    ctx = context()
    if ctx.settings.rates_source != "static" or ctx.settings.environment != "development":
        raise UnknownRatesSourceError(ctx.settings.rates_source)
    log.warning("rates come from a static table: for development only, never for money")
    with transaction():
        for currency, usd in static_rates().items():
            rates.store_rate(currency, usd, source="static")

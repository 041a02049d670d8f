"""Declares the tables of rates and network fees."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from models.db.table import Numeric, Table, Units


class NetworkFee(Table, table="network_fees"):
    """What one payout of a coin costs, in the coin and in the gas coin; and what a sweep costs, in the coin."""

    network: str
    currency: str
    units: Units
    quoted_at: datetime
    gas_units: Units
    sweep_units: Units | None


class RateRow(Table, table="rates"):
    """A coin's price in US dollars."""

    currency: str
    usd: Decimal
    source: str
    quoted_at: datetime
    agreed_at: datetime


class RateSourceRow(Table, table="rate_sources"):
    """A source of rates with what it said last."""

    source: str
    quotes: dict[str, Any]
    answered_at: datetime | None
    ask_at: datetime
    failures: int
    problem: str
    unknown: list[str]
    unknown_at: datetime | None


class KeptRate(Table, table="kept_rates"):
    """A rate, or a network fee, that was in force from a moment on; at most one a minute."""

    currency: str
    # Empty for a rate.
    network: str
    minute: datetime
    starts_at: datetime
    stale_at: datetime
    figure: Numeric

"""Sums up, for its buyer, what came to an invoice's address: in time, late, and in other coins.

Read by api.pages.pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from models.db.base import rows

# Coins besides the right one that a page names.
STRAYS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """Money of another coin, or over another network, that waits for the merchant's decision."""

    currency: str
    network: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Sums in the ledger's units, without deposits that a reorg took and refunded ones in another coin."""

    # Of the right coin, from blocks after the expiry.
    late_units: int = 0
    strays: tuple[Stray, ...] = ()


def read(invoice_id: UUID, *, expires_at: datetime) -> Arrivals:
    """Return what came to an invoice: one row for each coin and network, however many deposits there are."""
    sums = rows(
        "SELECT stray_reason, currency, network,"
        " sum(amount_units), COALESCE(sum(amount_units) FILTER (WHERE seen_at > %s), 0)"
        " FROM deposits WHERE owner_id = %s AND owner_kind = 'invoice' AND status <> 'reversed'"
        " AND (stray_reason IS NULL OR (stray_reason IN ('asset', 'network') AND refund_id IS NULL"
        "   AND status <> 'credited'))"
        " GROUP BY stray_reason, currency, network ORDER BY 4 DESC, currency, network",
        (expires_at, invoice_id),
    )
    return Arrivals(
        late_units=sum(late for reason, _, _, _, late in sums if reason is None),
        strays=tuple(
            Stray(currency=currency, network=network, units=units)
            for reason, currency, network, units, _ in sums
            if reason is not None
        )[:STRAYS_MAX],
    )

"""Finds invoices whose time is over: due for their end, overdue while no scan moves, or credited in part."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from models.db.base import column, in_transaction, value
from models.deposits import cursors, sightings
from models.invoices.rows import LIFETIME_CEILING_S, InvoiceRow

# Each network by itself: if a scan is halted, the invoices that wait for it do not delay others.
_DUE: Final = (
    f"SELECT due.id FROM (SELECT c.network, {cursors.PASSED} AS passed FROM chain_cursors c"
    "  UNION ALL SELECT '', app_now() + interval '1 microsecond') c"
    " CROSS JOIN LATERAL (SELECT i.id, i.expires_at FROM invoices i WHERE i.status IN ('select', 'check')"
    "  AND COALESCE(i.network, '') = c.network AND i.expires_at < c.passed AND i.expires_at <= app_now()"
    "  AND {further} ORDER BY i.expires_at LIMIT %s {then}) due ORDER BY due.expires_at LIMIT %s"
)
_NOTHING_AWAITED: Final = (
    "NOT EXISTS (SELECT 1 FROM deposits d WHERE d.owner_id = i.id AND d.status = 'pending'"
    "   AND d.stray_reason IS DISTINCT FROM 'dust' AND d.seen_at <= i.expires_at)"
    " AND NOT (i.status = 'check' AND EXISTS (SELECT 1 FROM sightings s"
    f"   WHERE s.stray_reason IS DISTINCT FROM 'dust' AND {sightings.AWAITED}))"
)


def due_for_settlement(limit: int) -> list[UUID]:
    """Return invoices whose expiry their network's scan (before a choice: the clock) has passed, oldest first."""
    return column(_DUE.format(further=_NOTHING_AWAITED, then=""), (limit, limit))


def claim_due(limit: int, *, further: str) -> list[UUID]:
    """Lock due invoices that also meet `further` and that no other process has locked; return them, oldest first."""
    if not in_transaction():
        raise RuntimeError("invoices are claimed in the transaction that ends them")
    return column(_DUE.format(further=further, then="FOR UPDATE OF i SKIP LOCKED"), (limit, limit))


# A scan that lags less than this ends its invoices itself; and rates are kept longer than an invoice lives and this.
OVERDUE_S: Final = 21_600
# Overdue for long, and not written to the end: the scan of their network does not move.
_UNWRITTEN: Final = (
    "i.status = 'check' AND i.rate_expires_at < i.expires_at"
    f" AND i.expires_at <= app_now() - make_interval(secs => {OVERDUE_S})"
    " AND COALESCE(i.quoted_until, i.rate_expires_at) < i.expires_at"
)


def lock_overdue(limit: int) -> list[InvoiceRow]:
    """Lock invoices whose time is over and whose quotes are not written to the end; no others than are free."""
    return InvoiceRow.read(f"{_UNWRITTEN} ORDER BY i.id LIMIT %s FOR UPDATE OF i SKIP LOCKED", (limit,))


def rates_needed_since() -> datetime:
    """Return the moment from which on rates may still be asked for: no open invoice is older, but for some overdue."""
    since: datetime = value(
        "SELECT LEAST(app_now() - make_interval(secs => %s),"
        f" (SELECT min(GREATEST(i.rate_expires_at, i.quoted_until)) FROM invoices i WHERE {_UNWRITTEN}))",
        (LIFETIME_CEILING_S,),
    )
    return since


def credit_due(limit: int) -> list[UUID]:
    """Return decided invoices with confirmed deposits that no page of their settlement has credited yet."""
    return column(
        "SELECT id FROM invoices WHERE is_credit_due AND status IN ('paid', 'paid_over') ORDER BY id LIMIT %s", (limit,)
    )

"""Ends invoices whose time is over and into which nothing came, a page in one transaction.

Called by actors.invoices.ticks. An invoice that has money, or may have some, is left to models.invoices.settlement.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.invoices.states import INVOICE_EVENTS
from models.db.base import column, transaction
from models.invoices import events, quoting, rows, views
from models.invoices.rows import InvoiceRow
from models.webhooks import outbox

# Deposits and sightings of every kind count, reversed ones and dust included: only settlement weighs them.
_UNTOUCHED: Final = (
    "i.detected_units = 0 AND i.confirmed_units = 0 AND i.is_growth_due IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.owner_id = i.id)"
    " AND NOT EXISTS (SELECT 1 FROM sightings s WHERE s.owner_id = i.id)"
)


def end_unpaid(catalogue: Catalogue, *, limit: int) -> int:
    """End a page of due invoices, with their events and webhooks; return how many were taken up.

    Safe to run many times at once: each takes rows that no other has locked.
    """
    with transaction():
        claimed = rows.claim_due(limit, further=_UNTOUCHED)
        quoting.write(catalogue, rows.lock_all(claimed))
        # A statement of its own sees what was committed before the rows were locked.
        ended = _end(claimed)
        events.note_unpaid(catalogue, ended)
        outbox.emit_all([views.payment_event(catalogue, each, INVOICE_EVENTS[each.status]) for each in ended])
    return len(claimed)


def _end(claimed: list[UUID]) -> list[InvoiceRow]:
    """Write the end of locked invoices that are still without money, and return them, the oldest first."""
    ended = column(
        "UPDATE invoices i SET status = 'expired', is_final = true, revision = COALESCE(revision, 0) + 1,"
        " updated_at = date_trunc('milliseconds', app_now())"
        f" WHERE i.id = ANY(%s::uuid[]) AND {_UNTOUCHED} RETURNING i.id",
        (claimed,),
    )
    return InvoiceRow.read("i.id = ANY(%s::uuid[]) ORDER BY i.expires_at, i.id", (ended,))

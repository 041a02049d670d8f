"""Ends invoices whose time is over and into which nothing came, a page in one transaction.

Called by actors.invoices.ticks. An invoice that has money, or may have some, is left to models.invoices.settlement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.invoices.states import INVOICE_EVENTS
from models.db.after_commit import count
from models.db.base import transaction
from models.invoices import deadlines, events, quoting, rows, views
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.webhooks import outbox

UNTOUCHED: Final = (
    "i.detected_units = 0 AND i.confirmed_units = 0 AND i.is_growth_due IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM deposits d WHERE d.owner_id = i.id)"
    " AND NOT EXISTS (SELECT 1 FROM sightings s WHERE s.owner_id = i.id)"
)
"""An invoice i into which nothing came.

Deposits and sightings of every kind count, reversed ones and dust included: only settlement weighs them.
"""


def end_unpaid(catalogue: Catalogue, *, limit: int) -> int:
    """End a page of due invoices, with their events and webhooks; return how many were taken up.

    Safe to run many times at once: each takes rows that no other has locked.
    """
    with transaction():
        claimed = deadlines.claim_due(limit, further=UNTOUCHED)
        if not claimed:
            return 0
        shown = quoting.seen_locked(catalogue, rows.lock_all(claimed))
        # Before their invoices change: a row that refers to one locks a version of it that only this change replaces.
        quoting.write_later(shown)
        ended = _end(shown)
        count("sluice_invoices_ended", "expired", by=len(ended))
        events.note_unpaid(catalogue, ended)
        outbox.emit_all([views.payment_event(catalogue, each, INVOICE_EVENTS[each.status]) for each in ended])
    return len(claimed)


def _end(shown: Sequence[Shown]) -> list[InvoiceRow]:
    """Write the end of locked invoices that are still without money, and return them, the oldest first.

    Of the others, to which something came since they were claimed, it writes the quote that is in force. A statement of
    its own sees what was committed before the rows were locked.
    """
    written = quoting.write_rows(
        shown,
        also="status = 'expired', is_final = true, revision = COALESCE(revision, 0) + 1,"
        " updated_at = date_trunc('milliseconds', app_now())",
        condition=UNTOUCHED,
    )
    left = {each.invoice.id: each for each in shown}
    ended = [
        left.pop(each.id).invoice.but(
            status="expired", is_final=True, revision=each.revision, updated_at=each.updated_at
        )
        for each in written
    ]
    quoting.write_rows(list(left.values()))
    return sorted(ended, key=lambda each: (each.expires_at, each.id))

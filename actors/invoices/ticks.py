"""Expires invoices whose time is over. Notified by the scheduler."""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context, context
from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from models.db.base import StoreUnavailableError, repeat_on_deadlock
from models.invoices import deadlines, endings, settlement

log = structlog.get_logger()

DUE_PER_STEP: Final = 200
# Each takes several transactions.
CROWDED_PER_STEP: Final = 20


@doorbell(queue="maintenance")
def settle_due_invoices() -> None:
    """Expire due invoices and credit the rest of crowded ones; notify itself again after a full page."""
    ctx = context()
    ended = _end_unpaid(ctx)
    due = deadlines.due_for_settlement(DUE_PER_STEP) if ended < DUE_PER_STEP else []
    for i in due:
        isolated(i, settlement.settle, ctx.catalogue, i, is_due=True)
    for i in deadlines.credit_due(CROWDED_PER_STEP):
        isolated(i, settlement.settle, ctx.catalogue, i)
    if DUE_PER_STEP in (ended, len(due)):
        ring("settle_due_invoices")


def _end_unpaid(ctx: Context) -> int:
    """End a page of unpaid invoices; return their number, 0 if one of them cannot be ended.

    In that case all are settled one by one, so that a broken one does not delay the others.
    """
    try:
        return repeat_on_deadlock(endings.end_unpaid, ctx.catalogue, limit=DUE_PER_STEP)
    except StoreUnavailableError:
        raise
    except Exception:
        log.exception("expiry.page_failed")
        return 0

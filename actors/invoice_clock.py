"""Settles invoices whose time has come without a deposit to wake them. Rung by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.broker import doorbell, ring
from actors.context import context
from models import invoices, settlement
from models.base import repeat_on_deadlock

DUE_PER_STEP: Final = 200


@doorbell(queue="maintenance")
def settle_due_invoices() -> None:
    """Expire what is due; rings itself again while a full page was due."""
    ctx = context()
    due = invoices.due_for_settlement(DUE_PER_STEP)
    emitted = [repeat_on_deadlock(lambda i=i: settlement.settle(ctx.catalogue, i)) for i in due]  # type: ignore[misc]
    if any(emitted):
        ring("deliver_webhooks")
    if len(due) == DUE_PER_STEP:
        ring("settle_due_invoices")

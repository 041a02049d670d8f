"""Does to invoices what only time calls for: expiry, and new quotes for old rates. Rung by the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from actors.broker import doorbell, ring
from actors.context import Context, context
from core.errors import DomainError
from models import invoice_plan, invoices, settlement
from models.base import repeat_on_deadlock, transaction

if TYPE_CHECKING:
    from uuid import UUID

    from core.pricing import Market

log = structlog.get_logger()

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


@doorbell(queue="maintenance")
def requote_invoices() -> None:
    """Give unpaid invoices whose rate has run out a new generation; stops where no fresh rate is to be had."""
    ctx = context()
    market = ctx.market.read()
    due = invoices.due_for_requote(DUE_PER_STEP)
    try:
        for invoice_id in due:
            repeat_on_deadlock(lambda i=invoice_id: _requote(ctx, market, i))  # type: ignore[misc]
    except DomainError as error:
        log.warning("no new quotes for now; the old ones hold", problem=error.code)
        return
    if len(due) == DUE_PER_STEP:
        ring("requote_invoices")


def _requote(ctx: Context, market: Market, invoice_id: UUID) -> None:
    with transaction():
        invoice = invoices.lock_for_requote(invoice_id)
        if invoice is None:
            return
        quote = invoice_plan.quote_again(ctx.catalogue, market, invoice, ctx.terms.read(invoice.merchant_id))
        invoices.requote(invoice, quote, quote_s=invoice_plan.QUOTE_S)

"""Does to invoices what only time calls for: expiry, and new quotes for old rates. Rung by the scheduler."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import Context, context
from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from core.errors import DomainError
from core.rates.pricing import Market
from models.db.base import StoreUnavailableError, repeat_on_deadlock, transaction
from models.invoices import endings, settlement
from models.invoices import plan as invoice_plan
from models.invoices import rows as invoices

log = structlog.get_logger()

DUE_PER_STEP: Final = 200
# Each takes several transactions.
CROWDED_PER_STEP: Final = 20


@doorbell(queue="maintenance")
def settle_due_invoices() -> None:
    """Expire what is due and credit what crowded invoices still hold; rings itself again while a full page expired."""
    ctx = context()
    ended = _end_unpaid(ctx)
    due = invoices.due_for_settlement(DUE_PER_STEP) if ended < DUE_PER_STEP else []
    for i in due:
        isolated(i, settlement.settle, ctx.catalogue, i, is_due=True)
    for i in invoices.credit_due(CROWDED_PER_STEP):
        isolated(i, settlement.settle, ctx.catalogue, i)
    if DUE_PER_STEP in (ended, len(due)):
        ring("settle_due_invoices")


def _end_unpaid(ctx: Context) -> int:
    """End a page of what nobody paid; return how many were taken up, 0 where one of them cannot be ended.

    Then all are settled one by one, where a broken one holds up no other.
    """
    try:
        return repeat_on_deadlock(endings.end_unpaid, ctx.catalogue, limit=DUE_PER_STEP)
    except StoreUnavailableError:
        raise
    except Exception:
        log.exception("expiry.page_failed")
        return 0


@doorbell(queue="maintenance")
def requote_invoices() -> None:
    """Quote invoices anew whose rate has run out and whose quote no deposit holds."""
    ctx = context()
    market = ctx.market.read()
    due = invoices.due_for_requote(DUE_PER_STEP)
    moved = [isolated(i, _quoted_anew, ctx, market, i) for i in due]
    if len(due) == DUE_PER_STEP and any(moved):
        ring("requote_invoices")


def _quoted_anew(ctx: Context, market: Market, invoice_id: UUID) -> bool:
    """Quote one invoice, or put it off where its coin has no fresh rate; return whether it is due no more."""
    with transaction():
        invoice = invoices.lock_for_requote(invoice_id)
        if invoice is None:
            return False
        try:
            quote = invoice_plan.quote_again(ctx.catalogue, market, invoice, ctx.terms.read(invoice.merchant_id))
        except DomainError as error:
            log.warning("quote.postponed", invoice_id=str(invoice_id), problem=error.code)
            invoices.postpone_requote(invoice, quote_s=invoice_plan.QUOTE_S)
        else:
            invoices.requote(invoice, quote, quote_s=invoice_plan.QUOTE_S)
    return True

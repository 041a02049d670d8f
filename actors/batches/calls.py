"""Accepts batches: writes all items in the call's own transaction, to be done later. The API waits for the answer.

actors.batches.ticks does the items.
"""

from __future__ import annotations

from actors.context import context
from actors.queue.call_specs import CREATE_PAYMENT_BATCH, CREATE_PAYOUT_BATCH, CREATE_REFUND_BATCH
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.batches.schemas import BatchKind, NewBatch
from core.errors import BatchDisabled
from core.ids import uuid7
from models.batches import rows as batches
from models.batches import views as batch_views
from models.batches.rows import BatchRow


@call_actor(CREATE_PAYMENT_BATCH, body=NewBatch)
def create_payment_batch(info: CallInfo, wanted: NewBatch) -> CallReply:
    """Accept a batch of payments."""
    return _take(info, "payment", wanted)


@call_actor(CREATE_PAYOUT_BATCH, body=NewBatch)
def create_payout_batch(info: CallInfo, wanted: NewBatch) -> CallReply:
    """Accept a batch of payouts."""
    return _take(info, "payout", wanted)


@call_actor(CREATE_REFUND_BATCH, body=NewBatch)
def create_refund_batch(info: CallInfo, wanted: NewBatch) -> CallReply:
    """Accept a batch of refunds."""
    return _take(info, "refund", wanted)


def _take(info: CallInfo, kind: BatchKind, wanted: NewBatch) -> CallReply:
    new = BatchRow(
        id=uuid7(),
        merchant_id=info.merchant(),
        kind=kind,
        on_error=wanted.on_error,
        count=len(wanted.items),
        created_by=info.principal(),
        request_id=info.request_id,
    )
    with recorded(info) as record:
        # Here, so that the stored answer of an earlier request with this key goes before.
        settings = context().settings
        if not settings.batches_enabled:
            raise BatchDisabled
        batches.check_open(
            new.merchant_id,
            count=new.count,
            merchant_max=settings.batch_open_items_merchant_max,
            gateway_max=settings.batch_open_items_max,
        )
        batches.create(new, wanted.items, wanted.order_ids)
        return record.store(batch_views.created(new.id, kind, new.count))

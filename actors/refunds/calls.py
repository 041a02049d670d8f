"""Refunds a payment. The API calls it through the queue and waits."""

from __future__ import annotations

from actors.context import context
from actors.queue.call_specs import REFUND_PAYMENT
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.refunds import orders as refund_orders
from core.refunds.schemas import CreateRefund


@call_actor(REFUND_PAYMENT, body=CreateRefund)
def refund_payment(info: CallInfo, body: CreateRefund) -> CallReply:
    """Refund a payment or a part of it, or return the refund that there is already."""
    with recorded(info) as record:
        return record.store(refund_orders.create(context(), info.asker(), body))

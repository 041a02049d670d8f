"""Refunds a payment. The API calls it through the queue and waits."""

from __future__ import annotations

from typing import Final

import msgspec

from actors.context import context
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.refunds import service as refund_orders
from core.http.principals import Signed
from core.refunds.schemas import CreateRefund

_decode_signed: Final = msgspec.json.Decoder(Signed)
_decode_create: Final = msgspec.json.Decoder(CreateRefund)


@call_actor(queue="payouts")
def refund_payment(info: CallInfo, payload: bytes) -> CallReply:
    """Refund a payment or a part of it, or return the refund that there is already."""
    order = _decode_signed.decode(payload)
    with recorded(info) as record:
        created = refund_orders.create(
            context(),
            merchant_id=info.merchant(),
            principal=order.principal,
            body=_decode_create.decode(order.body),
            request_id=info.request_id,
        )
        reply = record.store(msgspec.json.encode(created))
    refund_orders.announce(created)
    return reply

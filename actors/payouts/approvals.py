"""Approves payouts that wait for somebody, and cancels what is not signed. The API calls it and waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from actors.context import context
from actors.queue.broker import ring
from actors.queue.caller import CallReply, call_actor, recorded
from core.http.principals import Signed
from core.payouts.schemas import PayoutLookup
from models.outcomes import decisions as payout_decisions
from models.payouts import views as payout_views

if TYPE_CHECKING:
    from actors.queue.caller import CallInfo

_decode_signed: Final = msgspec.json.Decoder(Signed)
_decode_lookup: Final = msgspec.json.Decoder(PayoutLookup)


@call_actor(queue="payouts")
def approve_payout(info: CallInfo, payload: bytes) -> CallReply:
    """Approve a payout in the name of who signed, and have it sent where no further approval is needed."""
    signed = _decode_signed.decode(payload)
    wanted = _decode_lookup.decode(signed.body)
    ctx = context()
    with recorded(info) as record:
        found = payout_decisions.look_up(info.merchant(), uuid=wanted.uuid, order_id=wanted.order_id)
        payout = payout_decisions.approve(ctx.catalogue, ctx.deny_list, found, principal=signed.principal)
        reply = record.store(msgspec.json.encode(payout_views.payout(ctx.catalogue, payout)))
    ring("deliver_webhooks")
    if payout.status == "approved":
        ring("broadcast", payout.network)
    return reply


@call_actor(queue="payouts")
def cancel_payout(info: CallInfo, payload: bytes) -> CallReply:
    """Cancel a payout for which nothing is signed; its money is available again."""
    wanted = _decode_lookup.decode(payload)
    ctx = context()
    with recorded(info) as record:
        found = payout_decisions.look_up(info.merchant(), uuid=wanted.uuid, order_id=wanted.order_id)
        payout = payout_decisions.cancel(ctx.catalogue, found)
        reply = record.store(msgspec.json.encode(payout_views.payout(ctx.catalogue, payout)))
    ring("deliver_webhooks")
    return reply

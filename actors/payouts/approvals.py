"""Approves payouts that wait for approval, and cancels unsigned ones. The API calls it and waits."""

from __future__ import annotations

from actors.context import context
from actors.queue.call_specs import APPROVE_PAYOUT, CANCEL_PAYOUT
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.payouts.schemas import PayoutLookup
from models.outcomes import decisions
from models.payouts import views as payout_views


@call_actor(APPROVE_PAYOUT, body=PayoutLookup)
def approve_payout(info: CallInfo, wanted: PayoutLookup) -> CallReply:
    """Approve a payout for the principal that signed the request; send it if no further approval is needed."""
    ctx = context()
    with recorded(info) as record:
        known = decisions.look_up(info.merchant(), uuid=wanted.uuid, order_id=wanted.order_id)
        payout = decisions.approve(ctx.catalogue, ctx.deny_list, known, principal=info.principal())
        return record.store(payout_views.payout(ctx.catalogue, payout))


@call_actor(CANCEL_PAYOUT, body=PayoutLookup)
def cancel_payout(info: CallInfo, wanted: PayoutLookup) -> CallReply:
    """Cancel a payout for which nothing is signed; its money is available again."""
    ctx = context()
    with recorded(info) as record:
        known = decisions.look_up(info.merchant(), uuid=wanted.uuid, order_id=wanted.order_id)
        payout = decisions.cancel(ctx.catalogue, known)
        return record.store(payout_views.payout(ctx.catalogue, payout))

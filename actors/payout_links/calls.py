"""Creates payout links (cheques), one or many, and cancels them. The API calls it through the queue and waits.

No answer here holds a claim token, so that none is stored or passes through Redis: the API adds them on the way out.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from actors.context import context
from actors.payout_links import orders as payout_link_orders
from actors.queue.call_specs import CANCEL_PAYOUT_LINK, CREATE_PAYOUT_LINK, CREATE_PAYOUT_LINKS
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.errors import ERRORS, DomainError
from core.payout_links.schemas import BatchedLink, CreatePayoutLink, PayoutLinkLookup
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.queue import calls


@call_actor(CREATE_PAYOUT_LINK, body=CreatePayoutLink)
def create_payout_link(info: CallInfo, body: CreatePayoutLink) -> CallReply:
    """Create a payout link; its money is set aside for the holder of its token."""
    ctx = context()
    payout_link_orders.require_enabled(ctx)
    # A second link with a reference is refused, even if the very same request comes twice.
    call = info if body.reference is None else dataclasses.replace(info, idem_key=None)
    with recorded(call) as record:
        return record.store(payout_link_orders.create(ctx, info.asker(), body))


@call_actor(CREATE_PAYOUT_LINKS, body=list[BatchedLink])
def create_payout_links(info: CallInfo, wanted: list[BatchedLink]) -> CallReply:
    """Create several links in one transaction; a refusal concerns only its own link.

    So a caller that stopped waiting has created none: no money is set aside whose token the merchant never received.
    """
    ctx = context()
    payout_link_orders.require_enabled(ctx)
    with recorded(info) as record:
        calls.take_turn(info.merchant())
        bodies = [item.link or ERRORS[item.code](item.message) for item in wanted]
        outcomes = payout_link_orders.create_all(ctx, info.asker(), bodies, batch_id=info.call_id)
        items = [_item(index, outcome) for index, outcome in enumerate(outcomes)]
        return record.store({"batch_id": str(info.call_id), "items": items})


def _item(index: int, outcome: dict[str, Any] | DomainError) -> dict[str, Any]:
    if isinstance(outcome, DomainError):
        error = {"code": outcome.code, "message": outcome.message}
        return {"index": index, "success": False, "error": error}
    return {"index": index, "success": True} | outcome


@call_actor(CANCEL_PAYOUT_LINK, body=PayoutLinkLookup)
def cancel_payout_link(info: CallInfo, lookup: PayoutLinkLookup) -> CallReply:
    """Cancel an unclaimed link; its money is available again."""
    with recorded(info) as record:
        link = payout_links.cancel(info.merchant(), UUID(lookup.link_id))
        return record.store(payout_link_views.link(context().catalogue, link))

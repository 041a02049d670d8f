"""Creates payout links (cheques), one or many, and cancels them. The API calls it through the queue and waits.

No answer here holds a claim token, so that none is stored or passes through Redis: the API adds them on the way out.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from actors.context import context
from actors.payout_links import service as payout_link_orders
from actors.queue.broker import ring
from actors.queue.caller import CallReply, call_actor, recorded
from core.errors import ERRORS, DomainError
from core.http.principals import Signed
from core.payout_links.schemas import BatchedLink, CreatePayoutLink, PayoutLinkLookup
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.queue import calls

if TYPE_CHECKING:
    from actors.queue.caller import CallInfo

_decode_signed: Final = msgspec.json.Decoder(Signed)
_decode_link: Final = msgspec.json.Decoder(CreatePayoutLink)
_decode_links: Final = msgspec.json.Decoder(list[BatchedLink])
_decode_lookup: Final = msgspec.json.Decoder(PayoutLinkLookup)


@call_actor(queue="payouts")
def create_payout_link(info: CallInfo, payload: bytes) -> CallReply:
    """Put money aside for whoever shows the token."""
    signed = _decode_signed.decode(payload)
    body = _decode_link.decode(signed.body)
    ctx = context()
    payout_link_orders.require_enabled(ctx)
    # A second link with a reference is refused, even where the very same request comes twice.
    call = info if body.reference is None else dataclasses.replace(info, idem_key=None)
    with recorded(call) as record:
        created = payout_link_orders.create(
            ctx, merchant_id=info.merchant(), principal=signed.principal, body=body, request_id=info.request_id
        )
        reply = record.store(msgspec.json.encode(created))
    if body.email:
        ring("deliver_emails")
    return reply


@call_actor(queue="bulk")
def create_payout_links(info: CallInfo, payload: bytes) -> CallReply:
    """Create several links in one transaction: one that is refused is refused alone.

    So whoever waits no longer has none: neither is money put aside whose token nobody was told.
    """
    signed = _decode_signed.decode(payload)
    ctx = context()
    payout_link_orders.require_enabled(ctx)
    with recorded(info) as record:
        calls.take_turn(info.merchant())
        outcomes = payout_link_orders.create_all(
            ctx,
            merchant_id=info.merchant(),
            principal=signed.principal,
            bodies=[item.link or ERRORS[item.code](item.message) for item in _decode_links.decode(signed.body)],
            request_id=info.request_id,
            batch_id=info.call_id,
        )
        items = [_item(index, outcome) for index, outcome in enumerate(outcomes)]
        reply = record.store(msgspec.json.encode({"batch_id": str(info.call_id), "items": items}))
    ring("deliver_emails")
    return reply


def _item(index: int, outcome: dict[str, Any] | DomainError) -> dict[str, Any]:
    if isinstance(outcome, DomainError):
        error = {"code": outcome.code, "message": outcome.message}
        return {"index": index, "success": False, "error": error}
    return {"index": index, "success": True} | outcome


@call_actor(queue="payouts")
def cancel_payout_link(info: CallInfo, payload: bytes) -> CallReply:
    """Take back a link that nobody has claimed; its money is available again."""
    lookup = _decode_lookup.decode(payload)
    with recorded(info) as record:
        link = payout_links.cancel(info.merchant(), UUID(lookup.link_id))
        return record.store(msgspec.json.encode(payout_link_views.link(context().catalogue, link)))

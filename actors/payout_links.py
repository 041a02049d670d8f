"""Creates payout links (cheques), one or many, and cancels them. The API calls it through the queue and waits.

No answer here holds a claim token, so that none is stored or passes through Redis: the API adds them on the way out.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from actors import payout_link_orders
from actors.broker import ring, single_flight
from actors.calls import CallReply, call_actor, recorded
from actors.context import Context, context
from core import payout_link_views
from core.errors import ERRORS, DomainError, IdempotencyInProgress
from core.payout_link_schemas import BatchedLink, CreatePayoutLink, PayoutLinkLookup
from core.principals import Signed
from models import calls, payout_links
from models.base import repeat_on_deadlock, transaction
from models.calls import AbandonedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.calls import CallInfo

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


@call_actor(queue="payouts")
def create_payout_links(info: CallInfo, payload: bytes) -> CallReply:
    """Create several links, each in a transaction of its own; one that fails fails alone.

    A call that stopped halfway goes on where it stopped when it is delivered again, or when the very same request
    comes again: its links are found by their batch and place.
    """
    signed = _decode_signed.decode(payload)
    ctx = context()
    payout_link_orders.require_enabled(ctx)
    batch_id = _batch_id(info)
    with single_flight(f"payout_links:{batch_id}") as is_mine:
        if not is_mine:
            raise IdempotencyInProgress
        with recorded(info) as record:
            # Answered before? What failed then must not succeed now, when nobody would be told of it.
            record.discard()
        batch = Batch(ctx=ctx, info=info, id=batch_id, merchant_id=info.merchant(), principal=signed.principal)
        items = batch.create_all(_decode_links.decode(signed.body))
        with recorded(info) as record:
            reply = record.store(msgspec.json.encode({"batch_id": str(batch_id), "items": items}))
    ring("deliver_emails")
    return reply


def _batch_id(info: CallInfo) -> UUID:
    """Return the id of a call's batch: the same for a repetition of the very same request."""
    if info.idem_key is None:
        return info.call_id
    digest = hashlib.sha256(f"payout link batch\n{info.merchant_id}\n{info.idem_key}".encode()).digest()
    return UUID(bytes=digest[:16], version=4)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that is being created."""

    ctx: Context
    info: CallInfo
    id: UUID
    merchant_id: UUID
    principal: str

    def create_all(self, items: Sequence[BatchedLink]) -> list[dict[str, Any]]:
        """Return what became of each item, in order. Raises AbandonedError once nobody waits for it."""
        return [self._create(index, item) for index, item in enumerate(items)]

    def _create(self, index: int, item: BatchedLink) -> dict[str, Any]:
        try:
            if item.link is None:
                raise ERRORS[item.code](item.message)
            link = item.link
            return {"index": index, "success": True} | repeat_on_deadlock(lambda: self._write(index, link))
        except DomainError as refusal:
            error = {"code": refusal.code, "message": refusal.message}
            return {"index": index, "success": False, "error": error}

    def _write(self, index: int, body: CreatePayoutLink) -> dict[str, Any]:
        place = (self.id, index)
        with transaction():
            made = payout_link_orders.again(self.ctx, self.merchant_id, place)
            if made is None:
                # Money that is put aside when nobody will be told the token only comes back by expiry.
                if calls.is_abandoned(self.info.call_id):
                    raise AbandonedError
                made = payout_link_orders.create(
                    self.ctx,
                    merchant_id=self.merchant_id,
                    principal=self.principal,
                    body=body,
                    request_id=self.info.request_id,
                    place=place,
                )
        return made


@call_actor(queue="payouts")
def cancel_payout_link(info: CallInfo, payload: bytes) -> CallReply:
    """Take back a link that nobody has claimed; its money is available again."""
    lookup = _decode_lookup.decode(payload)
    with recorded(info) as record:
        link = payout_links.cancel(info.merchant(), UUID(lookup.link_id))
        return record.store(msgspec.json.encode(payout_link_views.link(context().catalogue, link)))

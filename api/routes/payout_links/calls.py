"""Declares how a merchant makes payout links (cheques): a held sum whose recipient names the address later."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

import msgspec

from actors.queue.call_specs import CANCEL_PAYOUT_LINK, CREATE_PAYOUT_LINK, CREATE_PAYOUT_LINKS
from api.endpoints import PAYOUT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.http.requests import page_size, read_request
from core.payout_links.schemas import (
    BatchedLink,
    CreatedPayoutLink,
    CreatePayoutLink,
    CreatePayoutLinks,
    PayoutLink,
    PayoutLinkBatch,
    PayoutLinkLookup,
    PayoutLinkPage,
    PayoutLinks,
)
from core.payout_links.tokens import ClaimTokens
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views

# Five hundred links take longer than one; shorter than what routers before us wait.
BATCH_WAIT_S: Final = 20.0


def add_tokens(gateway: Gateway, answer: bytes) -> bytes:
    """Add claim tokens to the answer of a creation: they are stored nowhere and pass through no queue."""
    tokens = ClaimTokens(gateway.settings.secret_keys)
    try:
        shown = payout_link_views.with_tokens(msgspec.json.decode(answer), tokens, gateway.settings.pay_url)
    except KeyError as error:
        # The workers already have new SECRET_KEYS and this process does not: that lasts a moment.
        raise errors.GatewayBusy from error
    return msgspec.json.encode(shown)


def batch_message(call: Call) -> list[BatchedLink]:
    """Return the message of a batch: each item parsed alone, or the error that it has."""
    return [_read(item) for item in cast("CreatePayoutLinks", call.body).links]


def _read(item: Any) -> BatchedLink:
    try:
        if not isinstance(item, dict):
            raise errors.RequestBadField("An item must be an object.")
        return BatchedLink(link=read_request(CreatePayoutLink, item, own_hosts=frozenset()))
    except errors.DomainError as refusal:
        # The message may quote the item, and so hold text that UTF-8 cannot encode.
        text = refusal.message.encode("utf-8", "backslashreplace").decode()
        return BatchedLink(code=refusal.code, message=text)


def read_list(gateway: Gateway, call: Call) -> Reply:
    """Return a page of the merchant's links."""
    wanted = cast("PayoutLinkPage", call.body)
    links = payout_links.page(call.merchant().merchant_id, limit=page_size(wanted.limit), offset=wanted.offset)
    return answered(payout_link_views.links(gateway.catalogue, links))


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one link; another merchant's is treated as missing."""
    lookup = cast("PayoutLinkLookup", call.body)
    link = payout_links.find(call.merchant().merchant_id, UUID(lookup.link_id))
    if link is None:
        raise errors.PayoutlinkNotFound
    return answered(payout_link_views.link(gateway.catalogue, link))


_LINK_ID: Final = "0190b3c6-6b1f-7d40-8c2a-5e4d3c2b1a09"
_BATCH_ID: Final = "5a3e9d5e-8f6f-4a2b-8c4d-0190b3c65a3e"
_TOKEN: Final = "q3VxYt0m1bq2zD0t8m2o6S1y9cXvJ4eN7hTqLrWkPZs"  # noqa: S105 - an example
EXAMPLE: Final[dict[str, Any]] = {
    "link_id": _LINK_ID,
    "status": "funded",
    "currency": "USDT",
    "network": "ethereum",
    "amount": "25",
    "title": "Prize",
    "note": "Well done!",
    "email": "winner@mail.example",
    "reference": "prize-7",
    "expires_at": "2025-11-25T15:00:00.000Z",
    "created_at": "2025-11-24T15:00:00.000Z",
}
_REQUEST: Final[dict[str, Any]] = {
    "currency": "USDT",
    "network": "ethereum",
    "amount": "25",
    "reference": "prize-7",
    "title": "Prize",
    "note": "Well done!",
    "email": "winner@mail.example",
    "expires_in_hours": 24,
}
_CREATED: Final[dict[str, Any]] = EXAMPLE | {
    "claim_token": _TOKEN,
    "claim_url": f"https://pay.example/claim/{_TOKEN}",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payout/link",
        name="createPayoutLink",
        tag="Payout links",
        summary="Create a payout link",
        description=(
            "Holds the amount and the network fee for a recipient, who opens claim_url and names an"
            " address. claim_token and claim_url are shown only here. Idempotency-Key has no effect:"
            " a second link with the same reference is refused; without a reference, an identical"
            " request with the same signature gets the first answer."
        ),
        rights=PAYOUT_KEYS,
        request=CreatePayoutLink,
        result=CreatedPayoutLink,
        actor=Actor(spec=CREATE_PAYOUT_LINK, complete=add_tokens),
        dedupes_signature=True,
        examples={"request": _REQUEST, "result": _CREATED},
    ),
    Endpoint(
        path="/v1/payout/link/batch",
        name="createPayoutLinks",
        tag="Payout links",
        summary="Create several payout links",
        description=(
            "Each link is made, or fails, independently, with the codes of POST /v1/payout/link. An"
            " identical request with the same signature makes no further links. After a 503 no link"
            " was made."
        ),
        rights=PAYOUT_KEYS,
        request=CreatePayoutLinks,
        result=PayoutLinkBatch,
        actor=Actor(
            spec=CREATE_PAYOUT_LINKS,
            message=batch_message,
            wait_s=BATCH_WAIT_S,
            complete=add_tokens,
        ),
        dedupes_signature=True,
        examples={
            "request": {"links": [_REQUEST, {"currency": "USDT", "network": "ethereum", "amount": "0"}]},
            "result": {
                "batch_id": _BATCH_ID,
                "items": [
                    {"index": 0, "success": True, "batch_id": _BATCH_ID} | _CREATED,
                    {
                        "index": 1,
                        "success": False,
                        "error": {"code": "payoutlink.bad_amount", "message": "amount must be more than zero."},
                    },
                ],
            },
        },
    ),
    Endpoint(
        path="/v1/payout/link/list",
        name="listPayoutLinks",
        tag="Payout links",
        summary="List payout links",
        description="Returns links newest first, without their tokens.",
        rights=PAYOUT_KEYS,
        request=PayoutLinkPage,
        result=PayoutLinks,
        reader=read_list,
        is_search=True,
        examples={"request": {"limit": 50, "offset": 0}, "result": {"links": [EXAMPLE]}},
    ),
    Endpoint(
        path="/v1/payout/link/info",
        name="getPayoutLink",
        tag="Payout links",
        summary="Read a payout link",
        description="After the claim, the answer has the payout's id and the recipient's address.",
        rights=PAYOUT_KEYS,
        request=PayoutLinkLookup,
        result=PayoutLink,
        reader=read_info,
        errors=(errors.PayoutlinkNotFound,),
        examples={
            "request": {"link_id": _LINK_ID},
            "result": EXAMPLE
            | {
                "status": "claimed",
                "payout_id": "0190b3c6-7c2a-7e51-9d3b-6f5e4d3c2b1a",
                "claim_address": "0x52908400098527886E0F7030069857D2E4169EE7",
            },
        },
    ),
    Endpoint(
        path="/v1/payout/link/cancel",
        name="cancelPayoutLink",
        tag="Payout links",
        summary="Cancel a payout link",
        description="Cancels a funded link. A link that is already cancelled or claimed is returned unchanged.",
        rights=PAYOUT_KEYS,
        request=PayoutLinkLookup,
        result=PayoutLink,
        actor=Actor(spec=CANCEL_PAYOUT_LINK),
        examples={"request": {"link_id": _LINK_ID}, "result": EXAMPLE | {"status": "cancelled"}},
    ),
)

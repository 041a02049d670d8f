"""Shows payout links (cheques) to their recipient: public, found by their token alone."""

from __future__ import annotations

from typing import Any, Final, cast

from actors.queue.call_specs import CLAIM_PAYOUT_LINK
from api.endpoints import PUBLIC, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.payout_links.schemas import Claim, ClaimedLink, ClaimLink, PublicPayoutLink
from core.payout_links.tokens import is_token, token_hash
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.payout_links.rows import PayoutLinkRow

PATH: Final = "/v1/claim/{token}"


def hash_of(token: str) -> bytes:
    """Return the stored hash of a path's token, or raise payoutlink.not_found if it is malformed."""
    if not is_token(token):
        raise errors.PayoutlinkNotFound
    return token_hash(token)


def find(token: str) -> PayoutLinkRow:
    """Return the link of a token, or raise payoutlink.not_found."""
    row = payout_links.find_by_token(hash_of(token))
    if row is None:
        raise errors.PayoutlinkNotFound
    return row


def read_claim(gateway: Gateway, call: Call) -> Reply:
    """Return a link to the holder of its token."""
    view = payout_link_views.public(gateway.catalogue, find(call.params["token"]))
    return answered(view)


def claim_message(call: Call) -> Claim:
    """Return the actor's message for a claim. The token itself is not passed on."""
    wanted = cast("ClaimLink", call.body)
    digest = hash_of(call.params["token"]).hex()
    return Claim(token_hash=digest, address=wanted.address, memo=wanted.memo or "")


_EXAMPLE: Final[dict[str, Any]] = {
    "currency": "USDT",
    "network": "ethereum",
    "amount": "25",
    "title": "Prize",
    "note": "Well done!",
    "status": "funded",
    "expires_at": "2025-11-25T15:00:00.000Z",
}

CLAIM: Final = Endpoint(
    path=PATH,
    name="claimPayoutLink",
    tag="Payout links",
    summary="Claim a payout link",
    description=(
        "Makes a payout to the recipient's address. A repeat with the same address gets the same"
        " payout; another address is refused. A refusal because of the address leaves the link"
        " unchanged."
    ),
    rights=PUBLIC,
    cors=True,
    limit="claim",
    request=ClaimLink,
    result=ClaimedLink,
    actor=Actor(spec=CLAIM_PAYOUT_LINK, message=claim_message),
    examples={
        "request": {"address": "0x52908400098527886E0F7030069857D2E4169EE7"},
        "result": {"status": "claimed", "payout_id": "0190b3c6-7c2a-7e51-9d3b-6f5e4d3c2b1a"},
    },
)

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=PATH,
        name="getClaim",
        tag="Payout links",
        summary="Read a payout link as its recipient",
        description="Shows the holder of the token the amount, and whether the link can be claimed.",
        rights=PUBLIC,
        cors=True,
        limit="public",
        result=PublicPayoutLink,
        reader=read_claim,
        examples={"result": _EXAMPLE},
    ),
    CLAIM,
)

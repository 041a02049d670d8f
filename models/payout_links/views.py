"""Renders payout links (cheques). Source: API reference, "Payout link (cheque) object".

A view never contains a claim token, since views are stored and pass through Redis. with_tokens() adds the tokens to an
answer as it leaves, by the id of the key that made them, which such an answer carries inside as claim_kid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from core.addresses.addresses import display
from core.catalogue.catalogue import Catalogue
from core.payout_links.tokens import ClaimTokens, claim_url
from core.texts.render import coin_text, iso_time
from models.payout_links.rows import PayoutLinkRow

KID: Final = "claim_kid"


def link(catalogue: Catalogue, shown: PayoutLinkRow) -> dict[str, Any]:
    """Return a payout link object."""
    body = {"link_id": str(shown.id)}
    if shown.batch_id is not None:
        body["batch_id"] = str(shown.batch_id)
    body |= {
        "status": shown.status,
        "currency": shown.currency,
        "network": shown.network,
        "amount": coin_text(catalogue, shown.currency, shown.amount_units),
        "title": shown.title,
        "note": shown.note,
        "email": shown.email,
        "reference": shown.reference or "",
        "expires_at": iso_time(shown.expires_at),
        "created_at": iso_time(shown.created_at),
    }
    if shown.payout_id is not None:
        body["payout_id"] = str(shown.payout_id)
        body["claim_address"] = display(catalogue.networks[shown.network], shown.claim_address or "")
    if shown.waiting_for is not None:
        body["waiting_for"] = shown.waiting_for
    return body


def links(catalogue: Catalogue, shown: Iterable[PayoutLinkRow]) -> dict[str, Any]:
    """Return POST /v1/payout/link/list."""
    return {"links": [link(catalogue, one) for one in shown]}


def public(catalogue: Catalogue, shown: PayoutLinkRow) -> dict[str, Any]:
    """Return GET /v1/claim/{token}. A link past its end shows as expired; its money may return a moment later."""
    return {
        "currency": shown.currency,
        "network": shown.network,
        "amount": coin_text(catalogue, shown.currency, shown.amount_units),
        "title": shown.title,
        "note": shown.note,
        "status": "expired" if shown.is_over else shown.status,
        "expires_at": iso_time(shown.expires_at),
    }


def claimed(shown: PayoutLinkRow) -> dict[str, Any]:
    """Return POST /v1/claim/{token}."""
    return {"status": shown.status, "payout_id": str(shown.payout_id)}


def created(catalogue: Catalogue, shown: PayoutLinkRow, kid: str) -> dict[str, Any]:
    """Return a new link's object, to be given to with_tokens(); kid: the key that made its token."""
    return link(catalogue, shown) | {KID: kid}


def with_tokens(answer: dict[str, Any], tokens: ClaimTokens, pay_url: str) -> dict[str, Any]:
    """Return what a creation answers: claim_token and claim_url in place of the key's id, in every item of a batch.

    Raises KeyError where SECRET_KEYS no longer holds the key.
    """
    shown = dict(answer)
    if "items" in shown:
        shown["items"] = [with_tokens(item, tokens, pay_url) for item in shown["items"]]
    if KID in shown:
        token = tokens.token(UUID(shown["link_id"]), shown.pop(KID))
        shown |= {"claim_token": token, "claim_url": claim_url(pay_url, token)}
    return shown

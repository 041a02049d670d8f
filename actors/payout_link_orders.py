"""Makes payout links (cheques) of requests, inside the caller's transaction. Used by actors.payout_links.

The object that comes back holds no token, only the id of the key that made it: see core.payout_link_views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from actors import signer_policy
from core import claim_tokens, mail, payout_link_views
from core.claim_tokens import ClaimTokens
from core.errors import (
    PayoutlinkBadAmount,
    PayoutlinkDisabled,
    PayoutlinkFundsMaturing,
    PayoutlinkInsufficientFunds,
    PayoutlinkUnknownCurrency,
    PayoutlinkUnsupportedNetwork,
)
from core.ids import uuid7
from core.secretbox import SecretBox
from core.views import coin_text
from models import emails, freezes, merchants, payout_links, payout_rules
from models.ledger import InsufficientFundsError
from models.payout_links import NewPayoutLink
from models.payout_rules import MethodErrors

if TYPE_CHECKING:
    from uuid import UUID

    from actors.context import Context
    from core.payout_link_schemas import CreatePayoutLink
    from models.payout_links import PayoutLinkRow

METHOD_ERRORS: Final = MethodErrors(unknown_currency=PayoutlinkUnknownCurrency, network=PayoutlinkUnsupportedNetwork)


def require_enabled(ctx: Context) -> None:
    """Refuse new links where the operator wants none. Those that exist can still be claimed and cancelled."""
    if not ctx.settings.payout_links_enabled:
        raise PayoutlinkDisabled


def create(
    ctx: Context,
    *,
    merchant_id: UUID,
    principal: str,
    body: CreatePayoutLink,
    request_id: str,
    place: tuple[UUID, int] | None = None,
) -> dict[str, Any]:
    """Write a link and its e-mail and hold its money, in the caller's transaction; return it as its creation answers.

    place: its batch, and where it stands in it. Raises payoutlink.* errors, payout.frozen and payout.fee_unavailable,
    after which nothing of the transaction may be committed. Ring deliver_emails after the commit.
    """
    tokens = ClaimTokens(ctx.settings.secret_keys)
    new = _planned(ctx, tokens, merchant_id=merchant_id, principal=principal, body=body, request_id=request_id)
    if place is not None:
        new = msgspec.structs.replace(new, batch_id=place[0], position=place[1])
    link = payout_links.insert(new, lifetime_h=body.expires_in_hours or 1)
    freezes.check(merchant_id, link.network, link.currency)
    try:
        payout_links.hold(link)
    except InsufficientFundsError:
        payout_rules.raise_shortage(
            merchant_id,
            link.currency,
            link.held_units,
            insufficient=PayoutlinkInsufficientFunds,
            maturing=PayoutlinkFundsMaturing,
        )
    if link.email and ctx.settings.smtp_url is not None:
        _write_email(ctx, link, tokens.token(link.id, tokens.current))
    return payout_link_views.created(ctx.catalogue, link, tokens.current)


def again(ctx: Context, merchant_id: UUID, place: tuple[UUID, int]) -> dict[str, Any] | None:
    """Return the link at a place of a batch as its creation answers; None where there is none yet."""
    link = payout_links.find_in_batch(merchant_id, *place)
    if link is None:
        return None
    kid = ClaimTokens(ctx.settings.secret_keys).kid_of(link.id, bytes(link.token_hash))
    return payout_link_views.created(ctx.catalogue, link, kid)


def _planned(
    ctx: Context, tokens: ClaimTokens, *, merchant_id: UUID, principal: str, body: CreatePayoutLink, request_id: str
) -> NewPayoutLink:
    """Check a request by every rule that asks nothing of the balance."""
    catalogue = ctx.catalogue
    pair = payout_rules.choose_pair(
        catalogue, ctx.available, currency=body.currency, network=body.network, errors=METHOD_ERRORS
    )
    units = payout_rules.amount_units(catalogue, pair.currency, body.amount, error=PayoutlinkBadAmount)
    payout_rules.check_minimum(catalogue, pair, units, error=PayoutlinkBadAmount)
    signer_policy.check_size(ctx, pair.currency, units, error=PayoutlinkBadAmount)
    link_id = uuid7()
    return NewPayoutLink(
        id=link_id,
        merchant_id=merchant_id,
        currency=pair.currency,
        network=pair.network,
        amount_units=units,
        fee_units=payout_rules.fee_units(catalogue, ctx.market.read(), pair.currency, pair.network),
        title=body.title or "",
        note=body.note or "",
        email=body.email or "",
        reference=body.reference,
        token_hash=tokens.new_hash(link_id),
        created_by=principal,
        request_id=request_id,
    )


def _write_email(ctx: Context, link: PayoutLinkRow, token: str) -> None:
    amount = coin_text(ctx.catalogue, link.currency, link.amount_units)
    body = mail.cheque_body(
        amount=amount,
        currency=link.currency,
        network_name=ctx.catalogue.networks[link.network].name,
        sender=merchants.name_of(link.merchant_id),
        title=link.title,
        note=link.note,
        until=f"{link.expires_at:%d %B %Y, %H:%M} UTC",
        claim_url=claim_tokens.claim_url(ctx.settings.pay_url, token),
    )
    emails.write(
        link.merchant_id,
        link.id,
        kind="cheque",
        recipient=link.email,
        subject=mail.cheque_subject(amount, link.currency),
        body=msgspec.json.encode(body),
        box=SecretBox(ctx.settings.secret_keys),
    )

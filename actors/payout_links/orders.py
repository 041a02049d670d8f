"""Creates payout links (cheques), inside the caller's transaction. Used by actors.payout_links.calls.

The returned object holds no token, only the id of the key that made it: see models.payout_links.views.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from actors.context import Context
from actors.signer import limits
from core.errors import (
    DomainError,
    PayoutlinkBadAmount,
    PayoutlinkDisabled,
    PayoutlinkFundsMaturing,
    PayoutlinkInsufficientFunds,
    PayoutlinkUnknownCurrency,
    PayoutlinkUnsupportedNetwork,
)
from core.ids import uuid7
from core.payout_links import tokens as payout_link_tokens
from core.payout_links.schemas import CreatePayoutLink
from core.payout_links.tokens import ClaimTokens
from core.secrets.secretbox import SecretBox
from core.texts import mail
from core.texts.render import coin_text
from models.ledger.ledger import InsufficientFundsError
from models.merchants import emails
from models.merchants import rows as merchants
from models.merchants.emails import Draft
from models.payout_links import batches as payout_link_batches
from models.payout_links import rows as payout_links
from models.payout_links import views as payout_link_views
from models.payout_links.rows import PayoutLinkRow
from models.payouts import freezes, order_checks
from models.payouts.order_checks import MethodErrors
from models.queue.calls import Asker

METHOD_ERRORS: Final = MethodErrors(unknown_currency=PayoutlinkUnknownCurrency, network=PayoutlinkUnsupportedNetwork)


def require_enabled(ctx: Context) -> None:
    """Refuse new links if the operator has disabled them. Existing links can still be claimed and cancelled."""
    if not ctx.settings.payout_links_enabled:
        raise PayoutlinkDisabled


def create(ctx: Context, asker: Asker, body: CreatePayoutLink) -> dict[str, Any]:
    """Write a link and its e-mail and hold its money, in the caller's transaction; return it as its creation answers.

    Raises payoutlink.* errors, payout.frozen and payout.fee_unavailable; after one the transaction must be rolled back.
    """
    tokens = ClaimTokens(ctx.settings.secret_keys)
    if body.email:
        emails.wait_turn(asker.merchant_id)
    link = payout_links.insert(_planned(ctx, asker, tokens, payout_links.now(), body))
    freezes.check(link.merchant_id, link.network, link.currency)
    try:
        payout_links.hold(link)
    except InsufficientFundsError:
        order_checks.raise_shortage(
            link.merchant_id,
            link.currency,
            link.held_units,
            insufficient=PayoutlinkInsufficientFunds,
            maturing=PayoutlinkFundsMaturing,
        )
    _write_emails(ctx, tokens, [link])
    return payout_link_views.created(ctx.catalogue, link, tokens.current)


def create_all(
    ctx: Context, asker: Asker, bodies: Sequence[CreatePayoutLink | DomainError], *, batch_id: UUID
) -> list[dict[str, Any] | DomainError]:
    """Create a batch of links; each is created, or refused with its error, as if it came alone after the ones before.

    Uses a few statements for all, in the caller's transaction. An error among the bodies is returned as it is.
    """
    tokens = ClaimTokens(ctx.settings.secret_keys)
    outcomes: list[dict[str, Any] | DomainError] = []
    wanted: dict[int, PayoutLinkRow] = {}
    now = payout_links.now()
    for position, body in enumerate(bodies):
        planned: Any = body
        if not isinstance(body, DomainError):
            try:
                new = _planned(ctx, asker, tokens, now, body)
            except DomainError as refusal:
                planned = refusal
            else:
                wanted[position] = new.but(batch_id=batch_id, position=position)
        outcomes.append(planned)
    if any(link.email for link in wanted.values()):
        emails.wait_turn(asker.merchant_id)
    made = payout_link_batches.fund(list(wanted.values()))
    _write_emails(ctx, tokens, [link for link in made if not isinstance(link, DomainError)])
    for position, link in zip(wanted, made, strict=True):
        if isinstance(link, DomainError):
            outcomes[position] = link
        else:
            outcomes[position] = payout_link_views.created(ctx.catalogue, link, tokens.current)
    return outcomes


def _planned(ctx: Context, asker: Asker, tokens: ClaimTokens, now: datetime, body: CreatePayoutLink) -> PayoutLinkRow:
    """Check a request by all rules that do not need the balance."""
    catalogue = ctx.catalogue
    pair = order_checks.choose_pair(
        catalogue, ctx.available, currency=body.currency, network=body.network, errors=METHOD_ERRORS
    )
    units = order_checks.amount_units(catalogue, pair.currency, body.amount, error=PayoutlinkBadAmount)
    order_checks.check_minimum(catalogue, pair, units, error=PayoutlinkBadAmount)
    limits.check_size(ctx, pair.currency, units, error=PayoutlinkBadAmount)
    link_id = uuid7()
    return PayoutLinkRow(
        id=link_id,
        merchant_id=asker.merchant_id,
        currency=pair.currency,
        network=pair.network,
        amount_units=units,
        fee_units=order_checks.fee_units(catalogue, ctx.market.read(), pair.currency, pair.network),
        title=body.title or "",
        note=body.note or "",
        email=body.email or "",
        reference=body.reference,
        token_hash=tokens.new_hash(link_id),
        created_by=asker.principal,
        request_id=asker.request_id,
        expires_at=now + timedelta(hours=body.expires_in_hours or 1),
        created_at=now,
    )


def _write_emails(ctx: Context, tokens: ClaimTokens, links: Sequence[PayoutLinkRow]) -> None:
    """Write the e-mails to recipients of new links, if there is a mail server and an address."""
    mailed = [link for link in links if link.email] if ctx.settings.smtp_url is not None else []
    if not mailed:
        return
    sender = merchants.name_of(mailed[0].merchant_id)
    emails.add(
        mailed[0].merchant_id,
        [_draft(ctx, link, tokens.token(link.id, tokens.current), sender) for link in mailed],
        kind="cheque",
        box=SecretBox(ctx.settings.secret_keys),
    )


def _draft(ctx: Context, link: PayoutLinkRow, token: str, sender: str) -> Draft:
    amount = coin_text(ctx.catalogue, link.currency, link.amount_units)
    body = mail.cheque_body(
        amount=amount,
        currency=link.currency,
        network_name=ctx.catalogue.networks[link.network].name,
        sender=sender,
        title=link.title,
        note=link.note,
        until=f"{link.expires_at:%d %B %Y, %H:%M} UTC",
        claim_url=payout_link_tokens.claim_url(ctx.settings.pay_url, token),
    )
    return Draft(
        object_id=link.id,
        recipient=link.email,
        subject=mail.cheque_subject(amount, link.currency),
        body=msgspec.json.encode(body),
    )

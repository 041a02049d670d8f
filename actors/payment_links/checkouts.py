"""Checks payment links out: buyers get payments of their own. The API calls it through the queue and waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

import structlog

from actors.context import Context, context
from actors.invoices import orders as invoice_orders
from actors.invoices.orders import Ready
from actors.payment_links import orders as payment_link_orders
from actors.queue.call_specs import CHECK_OUT_LINK
from actors.queue.caller import CallInfo, CallReply, call_actor
from core.errors import DomainError, GatewayBusy, PaylinkNotFound, TooManyRequestsError
from core.payment_links.schemas import CheckOut
from core.rates.pricing import Terms
from models.db.base import repeat_on_deadlock, transaction
from models.payment_links import checkouts
from models.payment_links import rows as payment_links
from models.payment_links.checkouts import Outcome
from models.payment_links.rows import PaymentLinkRow
from models.queue import calls

log = structlog.get_logger()

# When a link with too many unpaid payments may have room again: they live for an hour.
FULL_RETRY_S: Final = 60

_REFUSALS: Final[Mapping[Outcome, Callable[[], Exception]]] = MappingProxyType(
    {"not_found": PaylinkNotFound, "full": lambda: TooManyRequestsError(FULL_RETRY_S), "left": GatewayBusy}
)


def _check_out_together(asked: Sequence[tuple[CallInfo, CheckOut]]) -> list[CallReply | None]:
    """Create payments in one statement; those that are refused or have no room are answered alone."""
    ctx = context()
    ready: list[tuple[CallInfo, Ready]] = []
    for info, wanted in asked:
        with contextlib.suppress(DomainError):
            payment_link_orders.require_enabled(ctx)
            link = ctx.links.read(wanted.link_id)
            ready.append((info, payment_link_orders.make_ready(ctx, link, wanted, ctx.terms.read(link.merchant_id))))
    made = _write(ctx, ready)
    answers = [made.get(info.call_id, ("left", None))[1] for info, _ in asked]
    return [None if answer is None else CallReply(body=answer.encode()) for answer in answers]


@call_actor(CHECK_OUT_LINK, body=CheckOut, together=_check_out_together)
def check_out_link(info: CallInfo, wanted: CheckOut) -> CallReply:
    """Create a link's payment, if the link is open and has room."""
    ctx = context()
    payment_link_orders.require_enabled(ctx)
    link = ctx.links.read(wanted.link_id)
    try:
        outcome, answer = _attempt(ctx, info, link, wanted)
        if outcome == "full" and _makes_room(ctx, link, wanted):
            outcome, answer = _attempt(ctx, info, link, wanted)
    except DomainError as error:
        # A link that is off reveals no more about itself than one that never existed.
        refusal: Exception = error if payment_links.is_open(link.id) else PaylinkNotFound()
    else:
        if answer is not None:
            return CallReply(body=answer.encode())
        refusal = _REFUSALS[outcome]()
    with transaction():
        # Raises the error that answered an earlier delivery of this call.
        calls.begin(info)
        raise refusal


def _attempt(ctx: Context, info: CallInfo, link: PaymentLinkRow, wanted: CheckOut) -> tuple[Outcome, str | None]:
    def attempt(terms: Terms) -> tuple[Outcome, str | None] | None:
        ready = payment_link_orders.make_ready(ctx, link, wanted, terms)
        written = _write(ctx, [(info, ready)])[info.call_id]
        return None if written[0] == "left" else written

    return invoice_orders.under_current_terms(ctx, link.merchant_id, attempt) or ("left", None)


def _makes_room(ctx: Context, link: PaymentLinkRow, wanted: CheckOut) -> bool:
    """Make room on a full link by ending another payment of it; False if none may be ended."""
    source = payment_link_orders.source_of(ctx, link.id, wanted)
    gone = repeat_on_deadlock(
        checkouts.make_room, link.id, source=source, unpaid_max=ctx.settings.payment_link_unpaid_max
    )
    if gone is not None:
        log.info("paylink.made_room", link=str(link.id), payment=str(gone))
    return gone is not None


def _write(ctx: Context, ready: Sequence[tuple[CallInfo, Ready]]) -> Mapping[UUID, tuple[Outcome, str | None]]:
    """Run the checkout statement in its own transaction; addresses that were not needed go back."""
    news = [one.creation(info) for info, one in ready]
    made = repeat_on_deadlock(checkouts.create, news, unpaid_max=ctx.settings.payment_link_unpaid_max)
    created = {call_id for call_id, (outcome, _) in made.items() if outcome == "created"}
    invoice_orders.give_back_unused(ctx, ready, created)
    return made

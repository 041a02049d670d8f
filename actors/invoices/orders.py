"""Creates and revives payments: planned outside a transaction, written by one statement. No actor; actors use it.

Used by actors.invoices.calls, where a caller waits and the statement is the transaction, and by the runs of batches,
where the statement is part of an item's transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from actors.context import Context
from core.addresses.addresses import display
from core.errors import DomainError, GatewayBusy, InvoiceAddressFailed
from core.invoices.schemas import CreatePayment
from core.rates.pricing import Market, Method, Terms
from models.db.base import repeat_on_deadlock
from models.deposits import rows as deposits
from models.invoices import creations, quoting, views
from models.invoices import plan as invoice_plan
from models.invoices import rows as invoices
from models.invoices.creations import Creation
from models.invoices.plan import Plan
from models.invoices.rows import InvoiceRow
from models.invoices.shown import Shown
from models.queue import calls
from models.queue.calls import CallInfo

T = TypeVar("T")

# Terms may change between reading and writing; a merchant who changes them this often can wait.
TERMS_ATTEMPTS: Final = 3


def under_current_terms(ctx: Context, merchant_id: UUID, attempt: Callable[[Terms], T | None]) -> T | None:
    """Return an attempt's result under a merchant's current terms; None if they changed during every attempt.

    The terms read may be outdated: under such terms nothing is created or refused. attempt: returns None if it found
    the terms outdated when it wrote; an error that it raises counts only if the terms are still the same.
    """
    terms = ctx.terms.read(merchant_id)
    for _ in range(TERMS_ATTEMPTS):
        refusal = None
        try:
            made = attempt(terms)
        except DomainError as error:
            made, refusal = None, error
        if made is not None:
            return made
        current = ctx.terms.refresh(merchant_id)
        if refusal is not None and current.version == terms.version:
            raise refusal
        terms = current
    return None


def plan(ctx: Context, merchant_id: UUID, body: CreatePayment, terms: Terms, *, link_id: UUID | None = None) -> Plan:
    """Plan a payment, all but its address. Raises the payment.* or invoice.* error that forbids it.

    link_id: the payment link of its checkout.
    """
    return invoice_plan.plan_invoice(
        body,
        merchant_id=merchant_id,
        catalogue=ctx.catalogue,
        terms=terms,
        market=ctx.market.read(),
        available=ctx.offered.read(),
        link_id=link_id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A planned payment, ready to be created: with its address and its answer, which still lacks the times."""

    plan: Plan
    invoice: InvoiceRow
    response: str
    terms_version: int

    def creation(self, info: CallInfo) -> Creation:
        """Return the parameters of the creating statement."""
        return Creation(
            call_id=info.call_id,
            idem_key=info.idem_key,
            fingerprint=info.fingerprint,
            terms_version=self.terms_version,
            lifetime_s=self.plan.lifetime_s,
            quote_s=self.plan.quote_s,
            family=self.plan.family,
            response=self.response,
            invoice=self.invoice.but(request_id=info.request_id),
        )


def make_ready(
    ctx: Context, planned: Plan, *, terms_version: int, methods: Sequence[Method] = (), public: bool = False
) -> Ready:
    """Give a plan an address of the pool, outside any transaction. Call give_back() if it is not needed.

    public: the answer goes to the buyer, with the methods to choose from while none is chosen. Raises
    InvoiceAddressFailed.
    """
    invoice = planned.invoice
    if planned.network is not None:
        ordinal, address = ctx.addresses.take(planned.network.family)
        invoice = invoice.but(address_ordinal=ordinal, address=display(planned.network, address))
    core = views.payment_core(ctx.catalogue, Shown(invoice), pay_url=ctx.settings.pay_url, public=public)
    if public and planned.network is None:
        core["accepted"] = views.accepted(methods)
    response = msgspec.json.encode(core).decode()[:-1]
    return Ready(plan=planned, invoice=invoice, response=response, terms_version=terms_version)


def give_back(ctx: Context, ready: Ready) -> None:
    """Return the address of a payment that was not created, if it has one."""
    if ready.invoice.address_ordinal is not None:
        ctx.addresses.give_back(ready.plan.family, ready.invoice.address_ordinal)


def write(ctx: Context, info: CallInfo, planned: Plan, *, terms_version: int) -> tuple[str, str | None]:
    """Create a payment by one statement in its own transaction; an address that was not needed goes back."""
    ready = make_ready(ctx, planned, terms_version=terms_version)
    outcome, answer = repeat_on_deadlock(creations.create, ready.creation(info))
    if outcome != "created":
        give_back(ctx, ready)
    return outcome, answer


def plainly_new(
    ctx: Context, asked: Iterable[tuple[CallInfo, CreatePayment]], *, may_take: Callable[[str], bool] = lambda _: True
) -> list[tuple[CallInfo, Ready]]:
    """Make the plainly new payments ready to be created together, outside any transaction.

    Call give_back() for those that are not created. Left out are requests to refresh, further requests of the same
    order, and refused ones.
    """
    ready: list[tuple[CallInfo, Ready]] = []
    orders: set[tuple[UUID, str]] = set()
    for info, body in asked:
        if body.order_id:
            if body.is_refresh or (order := (info.merchant(), body.order_id)) in orders:
                continue
            orders.add(order)
        new, _ = _try_ready(ctx, info.merchant(), body, ctx.terms.read(info.merchant()), may_take)
        if new is not None:
            ready.append((info, new))
    return ready


def create_together(ready: Sequence[tuple[CallInfo, Ready]]) -> dict[UUID, str]:
    """Create plainly new payments by one statement; return their answers by call.

    Payments that prove not to be plainly new are missing from the answers, and untouched.
    """
    return creations.create_together([one.creation(info) for info, one in ready]) if ready else {}


def write_together(ctx: Context, ready: Sequence[tuple[CallInfo, Ready]]) -> dict[UUID, str]:
    """Run create_together() in its own transaction; addresses that were not needed go back."""
    made = create_together(ready)
    give_back_unused(ctx, ready, made)
    return made


def give_back_unused(ctx: Context, ready: Sequence[tuple[CallInfo, Ready]], made: Container[UUID]) -> None:
    """Give back the addresses of payments that were not created."""
    for info, one in ready:
        if info.call_id not in made:
            give_back(ctx, one)


def rendered(ctx: Context, invoice: InvoiceRow, *, public: bool = False) -> bytes:
    """Return a stored payment's JSON, as its endpoints answer."""
    shown = quoting.seen_one(ctx.catalogue, invoice)
    return msgspec.json.encode(views.payment(ctx.catalogue, shown, pay_url=ctx.settings.pay_url, public=public))


def refresh(ctx: Context, merchant_id: UUID, body: CreatePayment, market: Market) -> InvoiceRow | None:
    """Return the live payment of an order, or revive the expired one without a deposit; None if there is neither.

    In the caller's transaction, during which no other one creates a payment for this order.
    """
    last = invoices.lock_last_by_order(merchant_id, body.order_id or "")
    if last is None or not (invoices.is_live(last) or _is_revivable(last)):
        return None
    if not invoices.is_live(last):
        _revive(ctx, last, market, lifetime_s=body.lifetime_s(ctx.settings.invoice_lifetime_s))
    return invoices.reread(last.id)


def _is_revivable(invoice: InvoiceRow) -> bool:
    return invoice.status == "expired" and not deposits.is_any_of(invoice.id)


def _revive(ctx: Context, invoice: InvoiceRow, market: Market, *, lifetime_s: int) -> None:
    """Open an expired invoice again: same price, coin and address, new expiry and quote."""
    if invoice.pay_currency is None:
        invoices.reopen(invoice, lifetime_s=lifetime_s, quote_s=None)
        return
    quote_s = invoice_plan.quote_lifetime_s(invoice, invoice_plan.method_of(invoice))
    invoices.reopen(invoice, lifetime_s=lifetime_s, quote_s=quote_s)
    quote = invoice_plan.quote_by(ctx.catalogue, market, invoice)
    invoices.add_quote(invoice, quote, generation=invoice.generation + 1)


@contextlib.contextmanager
def prepared(
    ctx: Context, info: CallInfo, body: CreatePayment, *, may_take: Callable[[str], bool]
) -> Iterator[Callable[[], bytes]]:
    """Make a payment ready, outside any transaction; yield the function that creates it inside the caller's.

    The function returns the JSON of the new payment, or of the live one with the same order_id. It raises the
    DomainError that forbids the payment, and GatewayBusy if the merchant's terms have changed since. After an error the
    caller has to roll its transaction back. info: a call without a key, for which no caller waits. may_take: returns
    whether a family has addresses to spare for it.
    """
    merchant_id = info.merchant()
    # Not from the cache: a stale entry would cost the caller's whole transaction.
    terms = ctx.terms.refresh(merchant_id)
    market = ctx.market.read()
    ready, refusal = _try_ready(ctx, merchant_id, body, terms, may_take)
    made: list[str] = []

    def create() -> bytes:
        made.clear()
        invoice = refresh(ctx, merchant_id, body, market) if body.is_refresh and body.order_id else None
        if invoice is not None:
            return rendered(ctx, invoice)
        if ready is not None:
            outcome, answer = creations.create(ready.creation(info))
            if outcome == "created" and answer is not None:
                # The caller records the answer; no caller asks for this call.
                calls.forget(info.call_id)
                made.append(answer)
                return answer.encode()
        return _live(ctx, merchant_id, body, refusal)

    try:
        yield create
    except BaseException:
        made.clear()
        raise
    finally:
        if ready is not None and not made:
            give_back(ctx, ready)


def _try_ready(
    ctx: Context, merchant_id: UUID, body: CreatePayment, terms: Terms, may_take: Callable[[str], bool]
) -> tuple[Ready | None, DomainError | None]:
    """Make a payment ready, or return why it is refused: an existing payment is answered even then."""
    try:
        planned = plan(ctx, merchant_id, body, terms)
        if planned.family and not may_take(planned.family):
            raise InvoiceAddressFailed
        return make_ready(ctx, planned, terms_version=terms.version), None
    except DomainError as refusal:
        return None, refusal


def _live(ctx: Context, merchant_id: UUID, body: CreatePayment, refusal: DomainError | None) -> bytes:
    live = invoices.find_live_by_order(merchant_id, body.order_id) if body.order_id else None
    if live is not None:
        return rendered(ctx, live)
    raise refusal or GatewayBusy

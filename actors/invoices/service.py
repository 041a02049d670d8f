"""Creates payments: planned outside, written in one statement, revived. For whatever creates payments.

Used by actors.invoices.calls, where a caller waits and the statement is the transaction, and by the runs of batches,
where it is part of an item's. No actor stands here.
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
from core.invoices.schemas import CreatePayment, clamp_lifetime
from core.rates.pricing import Market, Method, Terms
from models.db.base import repeat_on_deadlock
from models.deposits import rows as deposits
from models.invoices import plan as invoice_plan
from models.invoices import quoting, views
from models.invoices import rows as invoices
from models.invoices.plan import Plan
from models.invoices.rows import Creation, InvoiceRow
from models.invoices.shown import Shown
from models.queue import calls
from models.queue.calls import CallInfo

T = TypeVar("T")

# Terms may change between reading and writing; a merchant who changes them this often can wait.
TERMS_ATTEMPTS: Final = 3


def under_current_terms(ctx: Context, merchant_id: UUID, attempt: Callable[[Terms], T | None]) -> T | None:
    """Return what an attempt comes to under a merchant's terms; None where they changed under every one.

    The terms may be of an earlier version: such neither create nor refuse anything. attempt: returns None where it
    found that out when it wrote; what it refuses counts if the terms are still the same.
    """
    terms = ctx.terms.read(merchant_id)
    for _ in range(TERMS_ATTEMPTS):
        refusal = None
        try:
            found = attempt(terms)
        except DomainError as error:
            found, refusal = None, error
        if found is not None:
            return found
        current = ctx.terms.refresh(merchant_id)
        if refusal is not None and current.version == terms.version:
            raise refusal
        terms = current
    return None


def plan(ctx: Context, merchant_id: UUID, body: CreatePayment, terms: Terms, *, link_id: UUID | None = None) -> Plan:
    """Decide everything about a payment but its address. Raises the payment.* or invoice.* error that forbids it.

    link_id: the payment link that it is checked out by.
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
    """A planned payment with its address and its answer, which lacks the moments: all that creating it needs."""

    plan: Plan
    invoice: InvoiceRow
    response: str
    terms_version: int

    def creation(self, info: CallInfo) -> Creation:
        """Return what the creating statement needs."""
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
    """Give a plan an address of the pool, outside any transaction. give_back() what was not needed.

    public: it is answered to its buyer, with the methods to choose from while nothing is chosen. Raises
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
    """Run the creating statement as a step of its own; an address that was not needed goes back."""
    ready = make_ready(ctx, planned, terms_version=terms_version)
    outcome, answer = repeat_on_deadlock(invoices.create, ready.creation(info))
    if outcome != "created":
        give_back(ctx, ready)
    return outcome, answer


def plainly_new(
    ctx: Context, asked: Iterable[tuple[CallInfo, CreatePayment]], *, may_take: Callable[[str], bool] = lambda _: True
) -> list[tuple[CallInfo, Ready]]:
    """Get those payments ready that can be created side by side, outside any transaction. give_back() what is not.

    Left out are what is to be refreshed, whatever follows another of its order, and what is refused.
    """
    ready: list[tuple[CallInfo, Ready]] = []
    orders: set[tuple[UUID, str]] = set()
    for info, body in asked:
        if body.order_id:
            if body.is_refresh or (order := (info.merchant(), body.order_id)) in orders:
                continue
            orders.add(order)
        found, _ = _try_ready(ctx, info.merchant(), body, ctx.terms.read(info.merchant()), may_take)
        if found is not None:
            ready.append((info, found))
    return ready


def create_together(ready: Sequence[tuple[CallInfo, Ready]]) -> dict[UUID, str]:
    """Run the creating statement once for all that are plainly new; return their answers by call.

    What is not plainly new is not among the answers, and untouched.
    """
    return invoices.create_together([one.creation(info) for info, one in ready]) if ready else {}


def write_together(ctx: Context, ready: Sequence[tuple[CallInfo, Ready]]) -> dict[UUID, str]:
    """Do create_together() as a step of its own; addresses that were not needed go back."""
    made = create_together(ready)
    give_back_unused(ctx, ready, made)
    return made


def give_back_unused(ctx: Context, ready: Sequence[tuple[CallInfo, Ready]], made: Container[UUID]) -> None:
    """Return the addresses of those payments whose calls are not among what was made."""
    for info, one in ready:
        if info.call_id not in made:
            give_back(ctx, one)


def rendered(ctx: Context, invoice: InvoiceRow, *, public: bool = False) -> bytes:
    """Return a stored payment as its endpoints answer it."""
    shown = quoting.seen_one(ctx.catalogue, invoice)
    return msgspec.json.encode(views.payment(ctx.catalogue, shown, pay_url=ctx.settings.pay_url, public=public))


def refresh(ctx: Context, merchant_id: UUID, body: CreatePayment, market: Market) -> InvoiceRow | None:
    """Return the live payment of an order, or revive the expired one without a deposit; None: there is neither.

    In the caller's transaction, in which nobody else creates one for this order.
    """
    last = invoices.lock_last_by_order(merchant_id, body.order_id or "")
    if last is None or not (invoices.is_live(last) or _is_revivable(last)):
        return None
    if not invoices.is_live(last):
        _revive(ctx, last, market, lifetime_s=clamp_lifetime(body.lifetime))
    return invoices.reread(last.id)


def _is_revivable(invoice: InvoiceRow) -> bool:
    return invoice.status == "expired" and not deposits.is_any_of(invoice.id)


def _revive(ctx: Context, invoice: InvoiceRow, market: Market, *, lifetime_s: int) -> None:
    """Open an expired invoice again: same price, coin and address, new expiry and quote."""
    if invoice.pay_currency is None:
        invoices.reopen(invoice, lifetime_s=lifetime_s, quote_s=None)
        return
    quote_s = invoice_plan.quote_lifetime_s(invoice.price_currency, invoice_plan.method_of(invoice))
    invoices.reopen(invoice, lifetime_s=lifetime_s, quote_s=quote_s)
    quote = invoice_plan.quote_by(ctx.catalogue, market, invoice)
    invoices.add_quote(invoice, quote, generation=invoice.generation + 1)


@contextlib.contextmanager
def prepared(
    ctx: Context, info: CallInfo, body: CreatePayment, *, may_take: Callable[[str], bool]
) -> Iterator[Callable[[], bytes]]:
    """Get a payment ready, outside any transaction; yields what creates it inside the caller's.

    That returns the payment's JSON: the new one's, or the live one's of the same order_id. It raises the DomainError
    that forbids it, and GatewayBusy where the merchant's terms have changed since. Nothing but a transaction that is
    rolled back may follow an error. info: of a call that nobody waits for, without a key. may_take: whether there are
    addresses of a family to spare for it.
    """
    merchant_id = info.merchant()
    # Not from the cache: a stale entry would cost the caller's whole transaction.
    terms = ctx.terms.refresh(merchant_id)
    market = ctx.market.read()
    ready, refusal = _try_ready(ctx, merchant_id, body, terms, may_take)
    made: list[str] = []

    def create() -> bytes:
        made.clear()
        found = refresh(ctx, merchant_id, body, market) if body.is_refresh and body.order_id else None
        if found is not None:
            return rendered(ctx, found)
        if ready is not None:
            outcome, answer = invoices.create(ready.creation(info))
            if outcome == "created" and answer is not None:
                # Kept with what the caller records; nobody asks for this call.
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
    """Return a payment that is ready, or why there cannot be one: what exists already is answered all the same."""
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

"""Creates invoices and lets buyers choose their coin. The API calls it through the queue and waits for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from actors.context import Context, context
from actors.invoices import orders as invoice_orders
from actors.queue.call_specs import CREATE_INVOICE, SELECT_METHOD
from actors.queue.caller import CallInfo, CallReply, call_actor
from core.addresses.addresses import display
from core.catalogue import hints
from core.errors import (
    DomainError,
    GatewayBusy,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InvoiceAddressFailed,
    InvoiceExpired,
    PayBelowMinimum,
    PaymentBelowMinimum,
    PaymentNetworkRequired,
    PayMethodNotAccepted,
    PayNotFound,
    PayNotSelectable,
    PayUnknownCurrency,
)
from core.invoices.schemas import CreatePayment, SelectMethod
from core.rates import pricing
from core.rates.pricing import Method, Quote, Terms
from models.db.base import transaction
from models.invoices import events
from models.invoices import plan as invoice_plan
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.queue import calls


def _create_together(asked: Sequence[tuple[CallInfo, CreatePayment]]) -> list[CallReply | None]:
    """Create plainly new invoices by one statement."""
    ctx = context()
    made = invoice_orders.write_together(ctx, invoice_orders.plainly_new(ctx, asked))
    return [CallReply(body=made[info.call_id].encode()) if info.call_id in made else None for info, _ in asked]


@call_actor(CREATE_INVOICE, body=CreatePayment, together=_create_together)
def create_invoice(info: CallInfo, body: CreatePayment) -> CallReply:
    """Create an invoice, or return what an earlier call with this key or order_id created."""
    ctx = context()
    if body.is_refresh and body.order_id:
        return _refresh(ctx, info, body)
    try:
        return _create(ctx, info, body)
    except DomainError:
        # An existing invoice is answered even if it could not be created now (no rate, below a new minimum).
        earlier = _earlier(ctx, info, body)
        if earlier is None:
            raise
        return earlier


def _create(ctx: Context, info: CallInfo, body: CreatePayment) -> CallReply:
    def attempt(terms: Terms) -> tuple[str, str | None] | None:
        plan = invoice_orders.plan(ctx, info.merchant(), body, terms)
        written = invoice_orders.write(ctx, info, plan, terms_version=terms.version)
        return None if written[0] == "stale_terms" else written

    written = invoice_orders.under_current_terms(ctx, info.merchant(), attempt)
    if written is None:
        raise GatewayBusy
    return _answer(ctx, info, body, *written)


def _answer(ctx: Context, info: CallInfo, body: CreatePayment, outcome: str, answer: str | None) -> CallReply:
    match outcome:
        case "created" if answer is not None:
            return CallReply(body=answer.encode())
        case "replayed" if answer is not None:
            return CallReply(body=answer.encode(), replayed=info.idem_key is not None)
        case "existing":
            reply = _earlier(ctx, info, body)
            if reply is not None:
                return reply
            raise GatewayBusy
        case "in_progress":
            raise IdempotencyInProgress
        case "key_reused":
            raise IdempotencyKeyReused
        case _:
            # The caller gave up waiting and returned an error; nothing may take effect now.
            raise GatewayBusy


class _NothingEarlierError(Exception):
    """Rolls back a look-up's transaction: the call has no answer yet."""


def _earlier(ctx: Context, info: CallInfo, body: CreatePayment) -> CallReply | None:
    """Return the stored answer of this key, or the live invoice of this order_id, recorded as this call's answer."""
    if info.idem_key is None and not body.order_id:
        return None
    try:
        with transaction():
            calls.begin(info)
            live = invoices.find_live_by_order(info.merchant(), body.order_id) if body.order_id else None
            if live is None:
                raise _NothingEarlierError
            return _finish(ctx, info, live)
    except _NothingEarlierError:
        return None


def _finish(ctx: Context, info: CallInfo, invoice: InvoiceRow, *, public: bool = False) -> CallReply:
    """Record an invoice as the call's answer, inside its transaction."""
    answer = invoice_orders.rendered(ctx, invoice, public=public)
    calls.finish(info.call_id, answer.decode())
    return CallReply(body=answer)


def _refresh(ctx: Context, info: CallInfo, body: CreatePayment) -> CallReply:
    """Return the live invoice of an order, revive the expired one without a deposit, or create another."""
    market = ctx.market.read()
    try:
        with transaction():
            calls.begin(info)
            invoice = invoice_orders.refresh(ctx, info.merchant(), body, market)
            if invoice is None:
                raise _NothingEarlierError
            return _finish(ctx, info, invoice)
    except _NothingEarlierError:
        return _create(ctx, info, body)


@call_actor(SELECT_METHOD, body=SelectMethod)
def select_method(info: CallInfo, choice: SelectMethod) -> CallReply:
    """Fix a currency-agnostic invoice's coin, network, address and quote by its buyer's choice."""
    ctx = context()
    before = invoices.find_public(choice.invoice_id)
    if before is None:
        raise PayNotFound
    # Not from the cache: nothing compares the version of a choice's terms afterwards.
    terms = ctx.terms.refresh(before.merchant_id)
    method = _selected(ctx, terms, choice)
    network = ctx.catalogue.networks[method[1]]
    family = network.family
    if before.link_id is not None and not ctx.spare.allows(family):
        raise InvoiceAddressFailed
    ordinal, address = ctx.addresses.take(family)
    try:
        with transaction():
            calls.begin(info)
            quote = _require_selectable(ctx, choice.invoice_id, method, terms)
            events.note(before.id, "selected", {"currency": method[0], "network": method[1]})
            invoices.choose(
                before,
                invoice_plan.chosen(ctx.catalogue, method, quote, generation=1),
                address=display(network, address),
                ordinal=ordinal,
                family=family,
                quote_s=invoice_plan.quote_lifetime_s(before, method),
            )
            return _finish(ctx, info, invoices.reread(before.id), public=True)
    except BaseException:
        ctx.addresses.give_back(family, ordinal)
        raise


def _selected(ctx: Context, terms: Terms, choice: SelectMethod) -> Method:
    """Return the method that a buyer names, if the merchant accepts it."""
    if choice.currency not in ctx.catalogue.assets:
        raise PayUnknownCurrency(hints.unknown_coin(ctx.catalogue, choice.currency))
    network = choice.network or pricing.only_network(ctx.catalogue, choice.currency)
    if network is None:
        raise PaymentNetworkRequired
    method = (choice.currency, network)
    acceptable = pricing.acceptable_methods(ctx.catalogue, terms, ctx.offered.read())
    if method not in acceptable:
        served = [other for coin, other in acceptable if coin == choice.currency]
        raise PayMethodNotAccepted(hints.unoffered(ctx.catalogue, choice.currency, network, served))
    return method


def _require_selectable(ctx: Context, invoice_id: UUID, method: Method, terms: Terms) -> Quote:
    """Lock the invoice and price the choice; raise if it was chosen already or has expired."""
    invoice = invoices.lock(invoice_id)
    if invoice is None:
        raise PayNotFound
    if invoice.status == "expired" or (invoice.status == "select" and invoices.is_past_expiry(invoice)):
        raise InvoiceExpired
    if invoice.status != "select":
        raise PayNotSelectable
    try:
        return invoice_plan.quote_choice(ctx.catalogue, ctx.market.read(), invoice, method, terms)
    except PaymentBelowMinimum:
        raise PayBelowMinimum from None

"""Resolves payments for merchants: accepts or refunds paid amounts, resends webhooks, sends an e-mail.

The API calls it through the queue and waits.
"""

from __future__ import annotations

from typing import Any

from actors.context import Context, context
from actors.queue.call_specs import RESEND_PAYMENT, RESOLVE_PAYMENT, SEND_PAYMENT_EMAIL
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from actors.refunds import uncredited
from actors.refunds.uncredited import Wanted
from core.errors import EmailDisabled, EmailNoRecipient, PaymentNotFound
from core.invoices import states
from core.invoices.schemas import PaymentLookup, ResolvePayment, SendPaymentEmail
from models.invoices import events, quoting, receipts, resolution, settlement, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.merchants import emails
from models.queue.calls import Asker
from models.refunds import views as refund_views
from models.webhooks import redelivery
from models.webhooks.redelivery import Requeued


@call_actor(RESEND_PAYMENT, body=PaymentLookup)
def resend_payment(info: CallInfo, lookup: PaymentLookup) -> CallReply:
    """Queue the webhook of a payment's latest status again; it is written now if there was no endpoint then."""
    with recorded(info) as record:
        invoice = _find(info, lookup)
        queued = _requeue(invoice)
        return record.store({"deliveries": [delivery.view() for delivery in queued]})


@call_actor(RESOLVE_PAYMENT, body=ResolvePayment)
def resolve_payment(info: CallInfo, wanted: ResolvePayment) -> CallReply:
    """Accept or send back a wrong_amount payment, or a stray deposit of any payment, and return the payment."""
    ctx = context()
    with recorded(info) as record:
        invoice = _locked(info, wanted)
        written: list[dict[str, Any]] = []
        if wanted.action == "refund":
            written = _send_back(ctx, info.asker(), invoice, wanted)
        elif wanted.txid:
            resolution.accept_stray(ctx.catalogue, invoice, wanted.txid)
        else:
            resolution.accept_payment(ctx.catalogue, invoice)
        shown = quoting.seen_one(ctx.catalogue, invoices.reread(invoice.id))
        view = views.payment(ctx.catalogue, shown, pay_url=ctx.settings.pay_url, public=False)
        return record.store(view | ({"refund": written[0]} if written else {}))


@call_actor(SEND_PAYMENT_EMAIL, body=SendPaymentEmail)
def send_payment_email(info: CallInfo, wanted: SendPaymentEmail) -> CallReply:
    """Queue an e-mail of a payment: its receipt once it is paid, else the way to its page."""
    with recorded(info) as record:
        invoice = _locked(info, wanted)
        post, recipient = emails.post(), wanted.email or invoice.payer_email
        if post is None:
            raise EmailDisabled
        if not recipient:
            raise EmailNoRecipient
        receipts.write_asked(context().catalogue, invoice, post, recipient)
        return record.store({"email": recipient, "queued": True})


def _send_back(ctx: Context, asker: Asker, invoice: InvoiceRow, wanted: ResolvePayment) -> list[dict[str, Any]]:
    """Refund a locked payment's money, or that of its stray deposit; return the refund objects, at least one."""
    to = Wanted(address=wanted.address, network=wanted.network)
    if wanted.txid:
        refunds = uncredited.return_stray(ctx, asker, invoice, wanted.txid, to)
    else:
        refunds = [uncredited.resolve(ctx, asker, invoice, to)]
    written = [refund_views.refund(ctx.catalogue, refund) for refund in refunds]
    events.note_sent_back(invoice.id, written, txid=wanted.txid)
    return written


def _find(info: CallInfo, lookup: PaymentLookup) -> InvoiceRow:
    invoice = invoices.look_up(info.merchant(), uuid=lookup.uuid, order_id=lookup.order_id)
    if invoice is None:
        raise PaymentNotFound
    return invoice


def _locked(info: CallInfo, lookup: PaymentLookup) -> InvoiceRow:
    invoice = invoices.lock(_find(info, lookup).id)
    if invoice is None:
        raise PaymentNotFound
    return invoice


def _requeue(invoice: InvoiceRow) -> list[Requeued]:
    event = states.INVOICE_EVENTS.get(invoice.status)
    if event is None:
        return []
    delivery = redelivery.requeue_latest(invoice.id, event)
    if delivery is None:
        settlement.tell(context().catalogue, invoice, event)
        delivery = redelivery.requeue_latest(invoice.id, event)
    return [delivery] if delivery else []

"""Declares the endpoints for existing payments: history, QR code, methods, resolution, repeated webhooks."""

from __future__ import annotations

from typing import Final, cast

from actors.queue.call_specs import RESEND_PAYMENT, RESOLVE_PAYMENT, SEND_PAYMENT_EMAIL
from api.endpoints import ANY_KEY, PAYMENT_KEYS, PAYOUT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from api.routes.invoices.calls import EXAMPLE, find_payment
from core import errors
from core.http.requests import Empty, page_size
from core.invoices import methods
from core.invoices.schemas import (
    Image,
    PaymentHistory,
    PaymentLookup,
    PaymentPage,
    PaymentServices,
    QueuedEmail,
    Resent,
    ResolvePayment,
    SendPaymentEmail,
)
from core.rates import pricing
from core.refunds.schemas import ResolvedPayment
from core.texts.qr import qr_data_uri
from models.invoices import history as invoice_history
from models.invoices import quoting, views
from models.merchants.terms import load_terms
from models.rates.rates import load_market


def read_history(gateway: Gateway, call: Call) -> Reply:
    """Return a page of the merchant's payments."""
    wanted = cast("PaymentHistory", call.body)
    page = invoice_history.read_page(call.merchant().merchant_id, wanted, limit=page_size(wanted.limit))
    items = [
        views.payment(gateway.catalogue, shown, pay_url=gateway.settings.pay_url, public=False)
        for shown in quoting.seen(gateway.catalogue, page.items)
    ]
    return answered({"items": items, "next_cursor": page.next_cursor})


def read_qr(gateway: Gateway, call: Call) -> Reply:
    """Return the QR code of the deposit address; before a coin is chosen, that of the payment page."""
    row = find_payment(gateway, call).invoice
    text = row.address or f"{gateway.settings.pay_url}/pay/{row.id}"
    return answered({"image": qr_data_uri(text)})


def read_services(gateway: Gateway, call: Call) -> Reply:
    """Return every method of the catalogue with this merchant's terms."""
    terms = load_terms(call.merchant().merchant_id, gateway.settings.standard_terms)
    usable = pricing.offered_methods(gateway.catalogue, terms.accepted, gateway.availability.read().payments)
    items = methods.payment_methods(gateway.catalogue, terms, load_market(), frozenset(usable))
    return answered({"items": items})


def resolve_message(call: Call) -> ResolvePayment:
    """Return the message of a resolution. Raises merchant.wrong_key_kind: a refund pays money out."""
    wanted = cast("ResolvePayment", call.body)
    if call.merchant().kind not in (PAYOUT_KEYS if wanted.action == "refund" else PAYMENT_KEYS):
        raise errors.MerchantWrongKeyKind
    return wanted


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/history",
        name="listPayments",
        tag="Payments",
        summary="List payments",
        description="Newest first. next_cursor is null on the last page.",
        rights=PAYMENT_KEYS,
        request=PaymentHistory,
        result=PaymentPage,
        reader=read_history,
        is_search=True,
        examples={"request": {"limit": 50, "status": "paid"}, "result": {"items": [EXAMPLE], "next_cursor": None}},
    ),
    Endpoint(
        path="/v1/payment/qr",
        name="getPaymentQr",
        tag="Payments",
        summary="Render a payment's QR code",
        description="The code has the deposit address; before the buyer has chosen a coin, the URL of the"
        " payment page.",
        rights=PAYMENT_KEYS,
        request=PaymentLookup,
        result=Image,
        reader=read_qr,
        errors=(errors.PaymentNotFound,),
        examples={
            "request": {"order_id": "order-1042"},
            "result": {"image": "data:image/png;base64,iVBORw0KGgo="},
        },
    ),
    Endpoint(
        path="/v1/payment/services",
        name="listPaymentMethods",
        tag="Payments",
        summary="List payment methods",
        description=(
            "Returns every coin on every network, with limits and fees. is_available is false for a"
            " method that you do not accept, and while the network's scan is halted or behind, no"
            " address is left, or the coin has no fresh rate."
        ),
        rights=PAYMENT_KEYS,
        request=Empty,
        result=PaymentServices,
        reader=read_services,
        examples={
            "request": {},
            "result": {
                "items": [
                    {
                        "currency": "USDT",
                        "network": "ethereum",
                        "is_available": True,
                        "limit": {"min_amount": "5", "max_amount": "10000000"},
                        "commission": {"percent": "1.5", "fixed_usd": "0.30"},
                        "confirmations": 12,
                        "discount_percent": 0,
                    }
                ]
            },
        },
    ),
    Endpoint(
        path="/v1/payment/resolve",
        name="resolvePayment",
        tag="Payments",
        summary="Resolve a payment",
        description=(
            "accept credits the paid sum in place of the price, and the payment becomes paid. refund"
            " sends the sum back, less the network fee, and the payment becomes final once the refund"
            " is confirmed. With txid, both apply to that stray deposit, in its own coin and in any"
            " status of the payment. accept needs a payment key, refund a payout key."
        ),
        rights=ANY_KEY,
        request=ResolvePayment,
        result=ResolvedPayment,
        actor=Actor(spec=RESOLVE_PAYMENT, message=resolve_message),
        errors=(errors.MerchantWrongKeyKind,),
        examples={
            "request": {"order_id": "order-1042", "action": "accept"},
            "result": {**EXAMPLE, "payment_status": "paid", "is_final": True},
        },
    ),
    Endpoint(
        path="/v1/payment/resend",
        name="resendPayment",
        tag="Payments",
        summary="Send a payment's webhooks again",
        description="Sends the webhook of the latest status again, with the same id.",
        rights=PAYMENT_KEYS,
        request=PaymentLookup,
        result=Resent,
        actor=Actor(spec=RESEND_PAYMENT),
        examples={
            "request": {"order_id": "order-1042"},
            "result": {
                "deliveries": [
                    {
                        "delivery_id": "0190b3c6-7d20-7a11-8f6f-1a2b3c4d5e6f",
                        "event": "invoice.paid",
                        "status": "pending",
                    }
                ]
            },
        },
    ),
    Endpoint(
        path="/v1/payment/send-email",
        name="sendPaymentEmail",
        tag="Payments",
        summary="E-mail a payment's receipt or page",
        description=(
            "Sends the receipt of a paid or paid_over payment, else the link to its page; to email,"
            " or else to the payment's payer_email. After five an hour for one payment, the answer is"
            " 429 with Retry-After."
        ),
        rights=PAYMENT_KEYS,
        request=SendPaymentEmail,
        result=QueuedEmail,
        actor=Actor(spec=SEND_PAYMENT_EMAIL),
        examples={
            "request": {"order_id": "order-1042", "email": "buyer@mail.example"},
            "result": {"email": "buyer@mail.example", "queued": True},
        },
    ),
)

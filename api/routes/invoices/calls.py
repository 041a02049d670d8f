"""Declares the endpoints with which a merchant creates a payment and reads it."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from actors.queue.call_specs import CREATE_INVOICE
from api.endpoints import PAYMENT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core import errors
from core.invoices.schemas import CreatePayment, Payment, PaymentInfo, PaymentLookup
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import quoting, views
from models.invoices import rows as invoices
from models.invoices.shown import Shown
from models.refunds import reads as refund_reads
from models.refunds import views as refund_views


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one payment with its refunds and strays; another merchant's is treated as missing."""
    shown = find_payment(gateway, call)
    row = shown.invoice
    view = views.payment(gateway.catalogue, shown, pay_url=gateway.settings.pay_url, public=False)
    refund_summary = refund_reads.of_payment(gateway.catalogue, row)
    view |= {
        "revision": row.revision or 0,
        "refund_status": refund_summary.part,
        "refunds": refund_views.in_payment(gateway.catalogue, refund_summary.refunds),
        "stray_deposits": [
            refund_views.stray(gateway.catalogue, deposit)
            for deposit in deposits.of_owner(row.id)
            if _is_stray(deposit)
        ],
    }
    return answered(view)


def _is_stray(deposit: Deposit) -> bool:
    return deposit.stray_reason is not None and deposit.status != "reversed"


def find_payment(gateway: Gateway, call: Call) -> Shown:
    """Return the payment that a request names, at its present quote, or raise payment.not_found."""
    lookup = cast("PaymentLookup", call.body)
    row = invoices.look_up(call.merchant().merchant_id, uuid=lookup.uuid, order_id=lookup.order_id)
    if row is None:
        raise errors.PaymentNotFound
    return quoting.seen_one(gateway.catalogue, row)


class _Present(msgspec.Struct):
    """The part of a payment object that a request may contradict."""

    amount: str = ""
    currency: str = ""
    payer_currency: str = ""
    network: str = ""


def differing(call: Call, answer: bytes) -> list[str]:
    """Return the fields in which a request asks for another price or coin than the payment has.

    Only an order_id's earlier payment can differ.
    """
    wanted = cast("CreatePayment", call.body)
    if not wanted.order_id:
        return []
    payment = msgspec.json.decode(answer, type=_Present)
    pairs = {
        "amount": (_canonical(wanted.amount), _canonical(payment.amount)),
        "currency": (wanted.currency, payment.currency),
        "to_currency": (wanted.to_currency, payment.payer_currency),
        "network": (wanted.network, payment.network),
    }
    return [name for name, (asked, present) in pairs.items() if asked and asked != present]


def _canonical(amount: str) -> str:
    """Return an amount without the zeros at its ends, which two spellings of it need not share."""
    whole, _, fraction = amount.partition(".")
    return f"{whole.lstrip('0')}.{fraction.rstrip('0')}"


EXAMPLE: Final[dict[str, Any]] = {
    "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
    "order_id": "order-1042",
    "amount": "125.50",
    "payment_amount": None,
    "amount_paid": "0",
    "amount_remaining": "125.5628",
    "payer_amount": "125.5628",
    "payer_currency": "USDT",
    "currency": "USD",
    "network": "ethereum",
    "address": "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "address_qr_code": "data:image/png;base64,iVBORw0KGgo=",
    "payment_status": "check",
    "is_multi": False,
    "url": "https://pay.sluice.example/pay/0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
    "expired_at": 1764000000,
    "rate_expires_at": 1763997300,
    "is_final": False,
    "created_at": "2025-11-24T15:00:00.000Z",
    "updated_at": "2025-11-24T15:00:00.000Z",
    "url_return": "https://shop.example/cart",
    "url_success": "https://shop.example/thanks",
    "confirmations": 0,
    "required_confirmations": 12,
    "txid": "",
    "additional_data": "basket 77",
    "payer_email": "buyer@mail.example",
    "payer_address": "",
}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment",
        name="createPayment",
        tag="Payments",
        summary="Create a payment",
        description=(
            "Creates a payment with a price and a deposit address. Without to_currency and network,"
            " the buyer chooses a coin on the hosted page, among those that allow a payment of this"
            " size; if none does, the answer is payment.below_minimum. A repeat with the order_id of"
            " a live payment returns that payment, and X-Differing-Fields names the price and coin that"
            " it asks for in vain; a repeat with the same Idempotency-Key returns the stored answer."
        ),
        rights=PAYMENT_KEYS,
        request=CreatePayment,
        result=Payment,
        actor=Actor(spec=CREATE_INVOICE),
        creates=True,
        differing=differing,
        examples={
            "request": {
                "amount": "125.50",
                "currency": "USD",
                "to_currency": "USDT",
                "network": "ethereum",
                "order_id": "order-1042",
            },
            "result": EXAMPLE,
        },
    ),
    Endpoint(
        path="/v1/payment/info",
        name="getPayment",
        tag="Payments",
        summary="Read a payment",
        description="Finds the payment by uuid, or else by order_id: the newest live payment, else the newest of all.",
        rights=PAYMENT_KEYS,
        request=PaymentLookup,
        result=PaymentInfo,
        reader=read_info,
        errors=(errors.PaymentNotFound,),
        examples={
            "request": {"order_id": "order-1042"},
            "result": {**EXAMPLE, "revision": 1, "refund_status": "none", "refunds": [], "stray_deposits": []},
        },
    ),
)

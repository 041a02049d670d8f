"""Declares the endpoint that shows a merchant the history of a payment, and why it is not paid."""

from __future__ import annotations

from typing import Final

from api.endpoints import PAYMENT_KEYS, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from api.routes.invoices.calls import find_payment
from core.errors import PaymentNotFound
from core.invoices.schemas import PaymentLookup
from core.invoices.timeline_schemas import Timeline
from models.invoices import timeline


def read_timeline(gateway: Gateway, call: Call) -> Reply:
    """Return the events of a payment; another merchant's is treated as missing."""
    return answered({"items": timeline.read(gateway.catalogue, find_payment(gateway, call))})


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/timeline",
        name="getPaymentTimeline",
        tag="Payments",
        summary="Read the history of a payment",
        description=(
            "Returns the events of a payment, oldest first, at most 1000: of more, the creation and"
            " the newest. detail shows what a deposit waits for, and the sum that an expired payment"
            " lacks."
        ),
        rights=PAYMENT_KEYS,
        request=PaymentLookup,
        result=Timeline,
        reader=read_timeline,
        errors=(PaymentNotFound,),
        examples={
            "request": {"order_id": "order-1042"},
            "result": {
                "items": [
                    {
                        "at": "2026-01-31T12:00:00.000Z",
                        "event": "created",
                        "detail": {"amount": "125.50", "currency": "USD", "expired_at": 1769864400},
                    },
                    {
                        "at": "2026-01-31T12:04:07.311Z",
                        "event": "confirmation",
                        "detail": {
                            "txid": "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060",
                            "amount": "125.5628",
                            "currency": "USDT",
                            "network": "ethereum",
                            "block_height": 24310077,
                            "depth": "3 of 12",
                            "waiting_for": "confirmations",
                        },
                    },
                ]
            },
        },
    ),
)

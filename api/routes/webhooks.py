"""Declares how a merchant sets its webhooks' address, reads the deliveries, repeats one and tests its endpoint."""

from __future__ import annotations

from typing import Any, Final, cast

from actors.queue.call_specs import REDELIVER_WEBHOOK, REGISTER_WEBHOOK, TRY_WEBHOOK
from api.endpoints import ANY_KEY, PAYMENT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core.http.requests import page_size
from core.webhooks.schemas import (
    Delivery,
    DeliveryPage,
    ListDeliveries,
    Redeliver,
    RegisterWebhook,
    TryWebhook,
    WebhookEndpoint,
    WebhookTrial,
)
from models.webhooks import deliveries
from models.webhooks import views as webhook_views

# A receiver may take ten seconds; the answer needs a little more to get here.
TRIAL_WAIT_S: Final = 15.0

EXAMPLE: Final[dict[str, Any]] = {
    "delivery_id": "0190b3c6-7d20-7a11-8f6f-1a2b3c4d5e6f",
    "event": "invoice.paid",
    "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
    "url": "https://shop.example/hooks/sluice",
    "status": "retrying",
    "attempts": 1,
    "last_status_code": 500,
    "last_error": "answered 500",
    "next_attempt_at": "2026-01-31T12:10:10.000Z",
    "created_at": "2026-01-31T12:10:00.000Z",
    "delivered_at": None,
    "request_id": "0190b3c6-5a3e-7bb1-8c4d-2e3f4a5b6c7d",
    "payload": {
        "type": "payment",
        "uuid": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d",
        "order_id": "order-1042",
        "amount": "125.50",
        "currency": "USD",
        "payment_amount": "125.57",
        "payer_amount": "125.57",
        "payer_currency": "USDT",
        "status": "paid",
        "revision": 1,
        "is_final": True,
        "txid": "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060",
        "additional_data": "",
    },
}


def read_deliveries(_gateway: Gateway, call: Call) -> Reply:
    """Return a page of the merchant's delivery log."""
    wanted = cast("ListDeliveries", call.body)
    page = deliveries.read_page(call.merchant().merchant_id, wanted, limit=page_size(wanted.limit))
    items = [webhook_views.delivery(row) for row in page.items]
    return answered({"items": items, "next_cursor": page.next_cursor})


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/webhooks",
        name="registerWebhook",
        tag="Webhooks",
        summary="Register the webhook endpoint",
        description=(
            "A merchant has one endpoint: a repeat replaces the URL and makes a new secret, which is"
            " shown only once. If you lose the answer, call again. The answer is the bare object."
        ),
        rights=PAYMENT_KEYS,
        request=RegisterWebhook,
        result=WebhookEndpoint,
        actor=Actor(spec=REGISTER_WEBHOOK),
        status=201,
        bare=True,
        examples={
            "request": {"url": "https://shop.example/hooks/sluice"},
            "result": {
                "endpoint_id": "0190b3c6-7d20-7a11-8f6f-1a2b3c4d5e6f",
                "url": "https://shop.example/hooks/sluice",
                "secret": "whsec_shown_once",
            },
        },
    ),
    Endpoint(
        path="/v1/webhooks/deliveries",
        name="listWebhookDeliveries",
        tag="Webhooks",
        summary="List webhook deliveries",
        description="Newest first. next_cursor is null on the last page.",
        rights=ANY_KEY,
        request=ListDeliveries,
        result=DeliveryPage,
        reader=read_deliveries,
        is_search=True,
        examples={"request": {"status": "retrying"}, "result": {"items": [EXAMPLE], "next_cursor": None}},
    ),
    Endpoint(
        path="/v1/webhooks/redeliver",
        name="redeliverWebhook",
        tag="Webhooks",
        summary="Send a webhook again",
        description=(
            "Sends the same delivery again, with its id and body, in any status; its attempts are"
            " counted from 0 again. A delivery whose body was deleted cannot be sent again."
        ),
        rights=PAYMENT_KEYS,
        request=Redeliver,
        result=Delivery,
        actor=Actor(spec=REDELIVER_WEBHOOK),
        examples={
            "request": {"delivery_id": EXAMPLE["delivery_id"]},
            "result": EXAMPLE | {"status": "pending", "attempts": 0},
        },
    ),
    Endpoint(
        path="/v1/webhooks/test",
        name="testWebhook",
        tag="Webhooks",
        summary="Test the webhook endpoint",
        description=(
            "Sends one signed webhook to the registered endpoint at once and waits for its answer, up"
            ' to 10 seconds. The body has the form of the event, a uuid of zeros and `"test": true`.'
            " It is not repeated. A merchant can run one test at a time; a second one gets"
            " gateway.busy."
        ),
        rights=PAYMENT_KEYS,
        request=TryWebhook,
        result=WebhookTrial,
        actor=Actor(spec=TRY_WEBHOOK, wait_s=TRIAL_WAIT_S),
        examples={
            "request": {"event": "invoice.paid"},
            "result": {"status_code": 200, "delivered": True, "duration_ms": 84, "error": None},
        },
    ),
)

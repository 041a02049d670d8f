"""Where a merchant's webhooks go."""

from __future__ import annotations

from typing import Final

from api.endpoints import PAYMENT_KEYS, Actor, Endpoint
from core.errors import WebhookBadUrl, WebhookNoUrl
from core.schemas import RegisterWebhook, WebhookEndpoint

ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/webhooks",
        name="registerWebhook",
        tag="Webhooks",
        summary="Register the webhook endpoint",
        description=(
            "One endpoint per merchant: a repeat replaces the address and makes a new secret, which is shown this once."
            " Where the answer was lost, call again. The answer is the bare object."
        ),
        rights=PAYMENT_KEYS,
        request=RegisterWebhook,
        result=WebhookEndpoint,
        actor=Actor(name="register_webhook", queue="invoices"),
        status=201,
        bare=True,
        errors=(WebhookNoUrl, WebhookBadUrl),
        examples={
            "request": {"url": "https://shop.example/hooks/sluice"},
            "result": {
                "endpoint_id": "0190b3c6-7d20-7a11-8f6f-1a2b3c4d5e6f",
                "url": "https://shop.example/hooks/sluice",
                "secret": "whsec_shown_once",
            },
        },
    ),
)

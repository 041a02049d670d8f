"""Declares requests and answers of the delivery log, of sending again and of trying an endpoint.

Read as core.net.requests is.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from core.errors import RequestBadField, WebhookBadCursor, WebhookBadUrl, WebhookNoUrl
from core.net.answers import Answer
from core.net.fields import NextCursor
from core.net.requests import Cursor, Request, UuidText
from core.webhooks.events import BODIES, Event

DeliveryStatus = Literal["pending", "retrying", "delivered", "dead"]


class RegisterWebhook(Request, kw_only=True, omit_defaults=True):
    """Where webhooks go (POST /v1/webhooks)."""

    refusals: ClassVar = {"url": WebhookBadUrl}
    absences: ClassVar = {"url": WebhookNoUrl}

    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="A public https address. A host in Unicode is kept as its punycode.",
            examples=["https://shop.example/hooks"],
        ),
    ]


class WebhookEndpoint(Answer, kw_only=True):
    """A registered endpoint; the secret is shown this once."""

    endpoint_id: Annotated[UuidText, Meta(description="The endpoint's identifier.")]
    url: Annotated[str, Meta(description="Where webhooks go.")]
    secret: Annotated[str, Meta(description="The key of X-Webhook-Signature.")]


class ListDeliveries(Request, kw_only=True, omit_defaults=True):
    """A page of the delivery log (POST /v1/webhooks/deliveries)."""

    refusals: ClassVar = {"cursor": WebhookBadCursor}

    limit: Annotated[int, Meta(description="Items shown: 1 to 200; anything else is 50.")] | None = None
    cursor: Cursor | None = None
    status: Annotated[DeliveryStatus | Literal[""] | None, Meta(description="The status; any without it.")] = None
    uuid: Annotated[UuidText, Meta(description="The payment, wallet or payout that the event is about.")] | None = None
    event: Annotated[Event | Literal[""] | None, Meta(description="The event; any without it.")] = None


class Redeliver(Request, kw_only=True, omit_defaults=True):
    """A delivery to send again (POST /v1/webhooks/redeliver)."""

    absences: ClassVar = {"delivery_id": RequestBadField}

    delivery_id: Annotated[UuidText, Meta(min_length=1, description="As the delivery log shows it.")]


class TryWebhook(Request, kw_only=True, omit_defaults=True):
    """A webhook to try the endpoint with (POST /v1/webhooks/test)."""

    event: Annotated[Event | Literal[""] | None, Meta(description="The event; invoice.paid without it.")] = None


class Delivery(Answer, kw_only=True):
    """A webhook, and its outcome."""

    delivery_id: Annotated[UuidText, Meta(description="The X-Webhook-Id of every attempt.")]
    event: Annotated[Event, Meta(description="The event's name.")]
    uuid: Annotated[UuidText, Meta(description="The payment, wallet or payout that the event is about.")]
    url: Annotated[str, Meta(description="Where it goes next or, once finished, where it went last.")]
    status: Annotated[DeliveryStatus, Meta(description="dead: the last attempt has failed.")]
    attempts: Annotated[int, Meta(description="Attempts so far, since it was last queued.")]
    last_status_code: Annotated[int | None, Meta(description="The HTTP status; null where no answer came.")]
    last_error: Annotated[str | None, Meta(description="null before the first failure, and after a success.")]
    next_attempt_at: Annotated[str | None, Meta(description="ISO 8601 in UTC; null once it is delivered or dead.")]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    delivered_at: Annotated[str | None, Meta(description="ISO 8601 in UTC.")]
    request_id: Annotated[
        str, Meta(description="The X-Request-Id of the call that made the object; empty where none is known.")
    ]
    payload: Annotated[
        Annotated[dict[str, Any], Meta(extra_json_schema=BODIES)] | None,
        Meta(description="The body; null once it is no longer kept, 30 days after the event."),
    ]


class DeliveryPage(Answer, kw_only=True):
    """Deliveries, and where the next page begins."""

    items: Annotated[list[Delivery], Meta(description="Newest first.")]
    next_cursor: NextCursor


class WebhookTrial(Answer, kw_only=True):
    """The outcome of a test webhook. It is not in the delivery log and not tried again."""

    status_code: Annotated[int | None, Meta(description="The HTTP status; null where no answer came.")]
    delivered: Annotated[bool, Meta(description="Whether the answer was 2xx.")]
    duration_ms: Annotated[int, Meta(description="Milliseconds until the answer, or until the failure.")]
    error: Annotated[str | None, Meta(description="null where it was delivered.")]

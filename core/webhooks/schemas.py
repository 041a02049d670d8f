"""Declares requests and answers of the delivery log, of sending again and of trying an endpoint.

Read as core.http.requests is.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from core.errors import RequestBadField, WebhookBadCursor, WebhookBadUrl, WebhookNoUrl
from core.http.answers import Answer
from core.http.fields import NextCursor
from core.http.requests import Cursor, Request, UuidText
from core.webhooks.events import BODIES, Event

DeliveryStatus = Literal["pending", "retrying", "delivered", "dead"]


class RegisterWebhook(Request, kw_only=True, omit_defaults=True):
    """The endpoint that receives your webhooks (POST /v1/webhooks)."""

    refusals: ClassVar = {"url": WebhookBadUrl}
    absences: ClassVar = {"url": WebhookNoUrl}

    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="A public https URL. A host in Unicode is stored as punycode.",
            examples=["https://shop.example/hooks"],
        ),
    ]


class WebhookEndpoint(Answer, kw_only=True):
    """A registered endpoint. Its secret is shown only once."""

    endpoint_id: Annotated[UuidText, Meta(description="The endpoint's identifier.")]
    url: Annotated[str, Meta(description="The URL that receives webhooks.")]
    secret: Annotated[str, Meta(description="The secret key of X-Webhook-Signature.")]


class ListDeliveries(Request, kw_only=True, omit_defaults=True):
    """A page of the delivery log (POST /v1/webhooks/deliveries)."""

    refusals: ClassVar = {"cursor": WebhookBadCursor}

    limit: (
        Annotated[int, Meta(description="The number of items on a page: 1 to 200. Any other value means 50.")] | None
    ) = None
    cursor: Cursor | None = None
    status: Annotated[
        DeliveryStatus | Literal[""] | None, Meta(description="Only deliveries with this status. Default: all.")
    ] = None
    uuid: Annotated[UuidText, Meta(description="The identifier of the event's payment, wallet or payout.")] | None = (
        None
    )
    event: Annotated[Event | Literal[""] | None, Meta(description="Only deliveries of this event. Default: all.")] = (
        None
    )


class Redeliver(Request, kw_only=True, omit_defaults=True):
    """A delivery to send again (POST /v1/webhooks/redeliver)."""

    absences: ClassVar = {"delivery_id": RequestBadField}

    delivery_id: Annotated[UuidText, Meta(min_length=1, description="The delivery's identifier in the delivery log.")]


class TryWebhook(Request, kw_only=True, omit_defaults=True):
    """A test webhook to your endpoint (POST /v1/webhooks/test)."""

    event: Annotated[Event | Literal[""] | None, Meta(description="The event to send. Default invoice.paid.")] = None


class Delivery(Answer, kw_only=True):
    """A webhook and the state of its delivery."""

    delivery_id: Annotated[
        UuidText, Meta(description="The delivery's identifier, which is the X-Webhook-Id of every attempt.")
    ]
    event: Annotated[Event, Meta(description="The event's name.")]
    uuid: Annotated[UuidText, Meta(description="The identifier of the event's payment, wallet or payout.")]
    url: Annotated[str, Meta(description="The URL of the next attempt or, once finished, of the last one.")]
    status: Annotated[
        DeliveryStatus,
        Meta(
            description="pending: not tried yet; retrying: waits for another attempt; delivered: your endpoint"
            " accepted it; dead: the last attempt failed."
        ),
    ]
    attempts: Annotated[int, Meta(description="The number of attempts since it was last queued.")]
    last_status_code: Annotated[
        int | None, Meta(description="The HTTP status of the last answer; null without an answer.")
    ]
    last_error: Annotated[
        str | None,
        Meta(description="The error of the last attempt; null before the first failure, and after a success."),
    ]
    next_attempt_at: Annotated[
        str | None,
        Meta(description="The time of the next attempt in ISO 8601, UTC; null once it is delivered or dead."),
    ]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    delivered_at: Annotated[str | None, Meta(description="Time in ISO 8601, UTC.")]
    request_id: Annotated[
        str, Meta(description="The X-Request-Id of the call that made the object; empty if it is unknown.")
    ]
    payload: Annotated[
        Annotated[dict[str, Any], Meta(extra_json_schema=BODIES)] | None,
        Meta(description="The webhook's body; null once it is deleted, 30 days after the event."),
    ]


class DeliveryPage(Answer, kw_only=True):
    """Deliveries, and where the next page begins."""

    items: Annotated[list[Delivery], Meta(description="Newest first.")]
    next_cursor: NextCursor


class WebhookTrial(Answer, kw_only=True):
    """The result of a test webhook. It is not in the delivery log and is not repeated."""

    status_code: Annotated[int | None, Meta(description="The HTTP status of the last answer; null without an answer.")]
    delivered: Annotated[bool, Meta(description="true if the answer was 2xx.")]
    duration_ms: Annotated[int, Meta(description="Milliseconds until the answer or the failure.")]
    error: Annotated[str | None, Meta(description="The error; null if it was delivered.")]

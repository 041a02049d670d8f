"""Describes the webhooks for OpenAPI: the body of each event, and the signature. Called by document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.endpoints import JSON
from core.webhooks.events import EVENTS
from models.webhooks import views

Json = dict[str, Any]

SIGNATURE: Final = """\
Lower-case hex of HMAC-SHA256, keyed with the endpoint's secret, over the value of X-Webhook-Timestamp, a dot and the
exact body bytes. Check it before reading the body, in constant time.
"""

HEADERS: Final[Mapping[str, Json]] = {
    "X-Webhook-Event": {"description": "The event's name.", "schema": {"type": "string"}},
    "X-Webhook-Id": {
        "description": "The delivery: the same on every attempt of it, different for every other.",
        "schema": {"type": "string", "format": "uuid"},
    },
    "X-Webhook-Timestamp": {
        "description": "Unix seconds when this attempt was sent.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "X-Webhook-Signature": {"description": SIGNATURE, "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
}
PARAMETERS: Final[Json] = {
    name: {"name": name, "in": "header", "required": True} | header for name, header in HEADERS.items()
}
TAG: Final = "Events"
_RESPONSES: Final[Json] = {
    "2XX": {"description": "It was processed."},
    "default": {"description": "It is sent again: up to 12 times in all, after 10 seconds at first, at most an hour."},
}


def body_types() -> tuple[type, ...]:
    """Return the types of all bodies."""
    return tuple(dict.fromkeys(kind.body for kind in EVENTS.values()))


def webhooks(by_type: Mapping[Any, Json]) -> Json:
    """Return the description of every event by its name."""
    return {event: {"post": _operation(event, by_type[kind.body], kind.when)} for event, kind in EVENTS.items()}


def _operation(event: str, body: Json, when: str) -> Json:
    example = {name: value for name, value in views.trial(event).items() if name != "test"}
    return {
        "operationId": f"on.{event}",
        "tags": [TAG],
        "summary": when,
        "description": "Answer within 10 seconds.",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in PARAMETERS],
        "security": [],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": body, "example": example}},
        },
        "responses": _RESPONSES,
    }

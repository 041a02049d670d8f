"""Renders the delivery log, and the bodies that endpoints are tried with. Source: API reference, "Events"."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from core.ids import NIL
from core.texts.render import iso_time
from models.webhooks.rows import DeliveryRecord


def delivery(shown: DeliveryRecord) -> dict[str, Any]:
    """Return a delivery as the log shows it; the payload is the body as it was sent."""
    return {
        "delivery_id": str(shown.id),
        "event": shown.event,
        "uuid": str(shown.object_id),
        "url": shown.shown_url,
        "status": shown.status,
        "attempts": shown.attempts,
        "last_status_code": shown.last_status_code,
        "last_error": shown.last_error,
        "next_attempt_at": _moment(shown.next_attempt_at),
        "created_at": iso_time(shown.created_at),
        "delivered_at": _moment(shown.delivered_at),
        "request_id": shown.request_id,
        "payload": msgspec.Raw(shown.body.encode()) if shown.body else None,
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso_time(moment)


# status and is_final of each event's body.
_OUTCOMES: Final[Mapping[str, tuple[str, bool]]] = {
    "invoice.paid": ("paid", True),
    "invoice.paid_over": ("paid_over", True),
    "invoice.wrong_amount": ("wrong_amount", False),
    "invoice.expired": ("expired", True),
    "wallet.paid": ("paid", True),
    "payout.pending": ("check", False),
    "payout.approved": ("process", False),
    "payout.awaiting_cosign": ("awaiting_cosign", False),
    "payout.broadcasting": ("process", False),
    "payout.sent": ("process", False),
    "payout.confirmed": ("paid", True),
    "payout.failed": ("fail", True),
    "payout.cancelled": ("cancel", True),
}
_ADDRESS: Final = "0x0000000000000000000000000000000000000000"
_TXID: Final = f"0x{'0' * 64}"
# The fields particular to each family of events, between uuid and status.
_SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "invoice": {
        "type": "payment",
        "order_id": "test",
        "amount": "10.00",
        "currency": "USD",
        "payment_amount": "10",
        "payer_amount": "10",
        "payer_currency": "USDT",
        "revision": 1,
        "txid": _TXID,
        "additional_data": "",
    },
    "wallet": {
        "type": "wallet",
        "order_id": "test",
        "address": _ADDRESS,
        "network": "ethereum",
        "currency": "USDT",
        "payment_amount": "10",
        "payer_currency": "USDT",
        "txid": _TXID,
    },
    "payout": {
        "type": "payout",
        "order_id": "test",
        "amount": "10",
        "currency": "USDT",
        "network": "ethereum",
        "address": _ADDRESS,
        "txid": _TXID,
    },
}


def trial(event: str) -> dict[str, Any]:
    """Return the body that an endpoint is tried with: an event's shape, of no object, and marked as a test."""
    status, is_final = _OUTCOMES[event]
    shape = _SHAPES[event.partition(".")[0]]
    return {**shape, "uuid": str(NIL), "status": status, "is_final": is_final, "test": True}

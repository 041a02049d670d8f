"""Reads the log of a merchant's deliveries and their outcomes, for POST /v1/webhooks/deliveries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from core.errors import WebhookBadCursor
from core.webhooks.schemas import ListDeliveries
from models.db.base import value
from models.db.paging import Page, cut_page, decode_cursor, filtered
from models.webhooks.rows import DeliveryRecord


def read_page(merchant_id: UUID, wanted: ListDeliveries, *, limit: int) -> Page[DeliveryRecord]:
    """Return one page of a merchant's deliveries, newest first. Raises webhook.bad_cursor."""
    where, values = filtered(
        {
            "d.merchant_id = %s": merchant_id,
            "d.status = %s": wanted.status,
            "d.event = %s": wanted.event,
            "d.object_id = %s": wanted.uuid,
            "(d.created_at, d.id) < %s": wanted.cursor and _place(merchant_id, wanted.cursor),
        }
    )
    records = DeliveryRecord.read(f"{where} ORDER BY d.created_at DESC, d.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(records, limit=limit)


def find(merchant_id: UUID, delivery_id: UUID) -> DeliveryRecord | None:
    """Return a merchant's delivery; None if it does not exist or is another merchant's."""
    return DeliveryRecord.first("d.id = %s AND d.merchant_id = %s", (delivery_id, merchant_id))


def _place(merchant_id: UUID, cursor: str) -> tuple[datetime, UUID]:
    """Return the position of a cursor in the order. Deliveries are never deleted, so each of our cursors is found."""
    last = decode_cursor(cursor, error=WebhookBadCursor)
    created_at = value(
        "SELECT created_at FROM webhook_deliveries WHERE id = %s AND merchant_id = %s", (last, merchant_id)
    )
    if created_at is None:
        raise WebhookBadCursor
    return created_at, last

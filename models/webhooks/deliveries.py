"""Reads the log of a merchant's deliveries and their outcomes, for POST /v1/webhooks/deliveries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from core.errors import WebhookBadCursor
from core.webhooks.schemas import ListDeliveries
from models.db.paging import Page, cut_page, decode_cursor
from models.db.query import comes_before, descending
from models.webhooks.rows import DeliveryRecord


def read_page(merchant_id: UUID, wanted: ListDeliveries, *, limit: int) -> Page[DeliveryRecord]:
    """Return one page of a merchant's deliveries, newest first. Raises webhook.bad_cursor."""
    order = DeliveryRecord.created_at, DeliveryRecord.id
    deliveries = DeliveryRecord.select().where(
        DeliveryRecord.merchant_id == merchant_id,
        not wanted.status or DeliveryRecord.status == wanted.status,
        not wanted.event or DeliveryRecord.event == wanted.event,
        not wanted.uuid or DeliveryRecord.object_id == wanted.uuid,
        not wanted.cursor or comes_before(order, _place(merchant_id, wanted.cursor)),
    )
    return cut_page(deliveries.order_by(*map(descending, order)).limit(limit + 1).all(), limit=limit)


def find(merchant_id: UUID, delivery_id: UUID) -> DeliveryRecord | None:
    """Return a merchant's delivery; None if it does not exist or is another merchant's."""
    mine = DeliveryRecord.select().where(DeliveryRecord.merchant_id == merchant_id)
    return mine.where(DeliveryRecord.id == delivery_id).first()


def _place(merchant_id: UUID, cursor: str) -> tuple[datetime, UUID]:
    """Return the position of a cursor in the order. Deliveries are never deleted, so each of our cursors is found."""
    last = decode_cursor(cursor, error=WebhookBadCursor)
    row = find(merchant_id, last)
    if row is None:
        raise WebhookBadCursor
    return row.created_at, last

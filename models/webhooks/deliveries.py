"""The delivery log: what was sent to a merchant, its outcome, what waits. Read by POST /v1/webhooks/deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from core.errors import WebhookBadCursor
from core.webhooks.schemas import ListDeliveries
from models.db.base import one_as, rows_as, value
from models.db.paging import Page, cut_page, decode_cursor


class DeliveryRow(NamedTuple):
    """A delivery, as models.webhooks.views shows it."""

    id: UUID
    event: str
    object_id: UUID
    # Where it goes next or, once finished, where it went last.
    url: str
    status: str
    attempts: int
    last_status_code: int | None
    last_error: str | None
    next_attempt_at: datetime | None
    created_at: datetime
    delivered_at: datetime | None
    # Empty once it is no longer kept.
    body: str


# A finished one went to the endpoint of its time, a waiting one goes to the one in force.
_READ: Final = """
SELECT d.id, d.event, d.object_id,
    COALESCE(d.url, CASE WHEN d.status IN ('delivered', 'dead') THEN former.url END, current.url, '') AS url,
    d.status, d.attempts, d.last_status_code, d.last_error, d.next_attempt_at, d.created_at, d.delivered_at, d.body
FROM webhook_deliveries d
    LEFT JOIN webhook_endpoints former ON former.id = d.sent_to
    LEFT JOIN webhook_endpoints current ON current.merchant_id = d.merchant_id AND current.replaced_at IS NULL
"""


def read_page(merchant_id: UUID, wanted: ListDeliveries, *, limit: int) -> Page[DeliveryRow]:
    """Return one page of a merchant's deliveries, newest first. Raises webhook.bad_cursor."""
    filters: list[tuple[str, object]] = [("d.merchant_id = %s", merchant_id)]
    filters += [
        (f"d.{column} = %s", value)
        for column, value in (("status", wanted.status), ("event", wanted.event), ("object_id", wanted.uuid))
        if value
    ]
    if wanted.cursor:
        filters.append(("(d.created_at, d.id) < (%s, %s)", _place(merchant_id, wanted.cursor)))
    where = " AND ".join(condition for condition, _ in filters)
    values = [part for _, value in filters for part in (value if isinstance(value, tuple) else (value,))]
    sql = f"{_READ} WHERE {where} ORDER BY d.created_at DESC, d.id DESC LIMIT %s"
    return cut_page(rows_as(DeliveryRow, sql, [*values, limit + 1]), limit=limit)


def find(merchant_id: UUID, delivery_id: UUID) -> DeliveryRow | None:
    """Return a merchant's delivery; None if there is none, or it is another's."""
    return one_as(DeliveryRow, f"{_READ} WHERE d.id = %s AND d.merchant_id = %s", (delivery_id, merchant_id))


def _place(merchant_id: UUID, cursor: str) -> tuple[datetime, UUID]:
    """Return where in the order a page ended. Deliveries are never deleted, so a cursor of ours is found for ever."""
    last = decode_cursor(cursor, error=WebhookBadCursor)
    created_at = value(
        "SELECT created_at FROM webhook_deliveries WHERE id = %s AND merchant_id = %s", (last, merchant_id)
    )
    if created_at is None:
        raise WebhookBadCursor
    return created_at, last

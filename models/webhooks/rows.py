"""Declares the tables of webhooks: endpoints and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from models.db.table import BY_DATABASE, Table, derived

_ENDPOINTS: Final = (
    "LEFT JOIN webhook_endpoints former ON former.id = d.sent_to"
    " LEFT JOIN webhook_endpoints current ON current.merchant_id = d.merchant_id AND current.replaced_at IS NULL"
)


class DeliveryRecord(Table, table="webhook_deliveries d", joins=_ENDPOINTS):
    """A webhook with its body and its attempts."""

    id: UUID
    merchant_id: UUID
    event: str
    object_id: UUID
    # The object's own url_callback, which goes before the endpoint's.
    url: str | None
    # Empty once it is no longer kept.
    body: str
    request_id: str
    status: str
    attempts: int
    next_attempt_at: datetime | None
    lease: UUID | None
    leased_until: datetime | None
    last_status_code: int | None
    last_error: str | None
    created_at: datetime
    delivered_at: datetime | None
    sent_to: UUID | None
    # Where it goes next or, once finished, where it went last: to the endpoint of its time, not to the one in force.
    shown_url: str = derived(
        "COALESCE(d.url, CASE WHEN d.status IN ('delivered', 'dead') THEN former.url END, current.url, '')"
    )


class EndpointRecord(Table, table="webhook_endpoints"):
    """A merchant's endpoint with its sealed secret."""

    id: UUID
    merchant_id: UUID
    url: str
    secret_box: str
    created_at: datetime = BY_DATABASE
    replaced_at: datetime | None = BY_DATABASE

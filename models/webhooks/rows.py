"""Declares the tables of webhooks: endpoints and deliveries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import BY_DATABASE, Table


class DeliveryRecord(Table, table="webhook_deliveries"):
    """A webhook with its body and its attempts."""

    id: UUID
    merchant_id: UUID
    event: str
    object_id: UUID
    url: str | None
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


class EndpointRecord(Table, table="webhook_endpoints"):
    """A merchant's endpoint with its sealed secret."""

    id: UUID
    merchant_id: UUID
    url: str
    secret_box: str
    created_at: datetime = BY_DATABASE
    replaced_at: datetime | None = BY_DATABASE

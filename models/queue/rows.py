"""Declares the table of calls."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from models.db.table import BY_DATABASE, Table


class CallRecord(Table, table="calls"):
    """A call with its idempotency key and its answer."""

    call_id: UUID
    merchant_id: UUID | None
    idem_key: str | None = BY_DATABASE
    fingerprint: bytes
    state: str
    response: str | None = BY_DATABASE
    created_at: datetime = BY_DATABASE

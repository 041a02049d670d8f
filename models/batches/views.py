"""Renders batches. Results are put in as the JSON that they were stored as, without being read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec import Raw

from core.texts.render import iso_time
from models.batches.items import ItemRow
from models.batches.rows import BatchRow


def created(batch_id: UUID, kind: str, count: int) -> dict[str, Any]:
    """Return what a new batch answers."""
    return {"batch_id": str(batch_id), "kind": kind, "count": count, "status": "pending"}


def info(shown: BatchRow, items: Sequence[ItemRow]) -> dict[str, Any]:
    """Return a batch with some of its items. It holds raw JSON: encode it with msgspec."""
    return {
        "batch_id": str(shown.id),
        "kind": shown.kind,
        "status": shown.status,
        "on_error": shown.on_error,
        "count": shown.count,
        "succeeded": shown.succeeded,
        "failed": shown.failed,
        "created_at": iso_time(shown.created_at),
        "completed_at": None if shown.completed_at is None else iso_time(shown.completed_at),
        "items": [_item(item) for item in items],
    }


def _item(item: ItemRow) -> dict[str, Any]:
    error = {"code": item.error_code, "message": item.error_message}
    return {
        "index": item.position,
        "order_id": item.order_id,
        "status": item.status,
        "result": None if item.result is None else Raw(item.result.encode()),
        "error": None if item.error_code is None else error,
    }

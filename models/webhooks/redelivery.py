"""Sends webhooks again when a merchant asks: the same delivery, with its id and body. Called by the actors that do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from core.errors import WebhookNotFound
from models.db.after_commit import Bell, ring
from models.db.base import execute, one, one_as


@dataclass(frozen=True, slots=True)
class Requeued:
    """A delivery that starts over."""

    id: UUID
    event: str
    status: str

    def view(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        return {"delivery_id": str(self.id), "event": self.event, "status": self.status}


_AGAIN: Final = (
    "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_attempt_at = app_now(),"
    " lease = NULL, leased_until = NULL, delivered_at = NULL"
)


def requeue_latest(object_id: UUID, event: str) -> Requeued | None:
    """Queue the newest delivery of an event again, with a new count of attempts; None if it was never written.

    An attempt that is under way loses its lease: it ends uncounted, and the delivery is sent once more.
    """
    requeued = one_as(
        Requeued,
        f"{_AGAIN} WHERE id ="
        " (SELECT id FROM webhook_deliveries WHERE object_id = %s AND event = %s AND body <> ''"
        "  ORDER BY created_at DESC, id DESC LIMIT 1 FOR UPDATE)"
        " RETURNING id, event, status",
        (object_id, event),
    )
    if requeued is not None:
        ring(Bell.DELIVER_WEBHOOKS)
    return requeued


def requeue(merchant_id: UUID, delivery_id: UUID) -> None:
    """Queue a merchant's delivery again, as requeue_latest does.

    Raises webhook.not_found, also where the body is no longer kept: there is nothing left to send.
    """
    whose = (delivery_id, merchant_id)
    if execute(f"{_AGAIN} WHERE id = %s AND merchant_id = %s AND body <> ''", whose):
        ring(Bell.DELIVER_WEBHOOKS)
        return
    if one("SELECT 1 FROM webhook_deliveries WHERE id = %s AND merchant_id = %s", whose):
        raise WebhookNotFound("The delivery's body is no longer kept.")
    raise WebhookNotFound

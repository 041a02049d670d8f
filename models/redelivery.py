"""Sends webhooks again when a merchant asks: the same delivery, with its id and body. Used by the resend actors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models.base import one

if TYPE_CHECKING:
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class Requeued:
    """A delivery that starts over."""

    id: UUID
    event: str
    status: str

    def view(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        return {"delivery_id": str(self.id), "event": self.event, "status": self.status}


def requeue_latest(object_id: UUID, event: str) -> Requeued | None:
    """Queue the newest delivery of an event again, its attempts counted anew; None where it was never written.

    One that is under way keeps its lease and its attempt, and is sent once more after it.
    """
    found = one(
        "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, next_attempt_at = app_now(),"
        " lease = NULL, leased_until = NULL, delivered_at = NULL WHERE id ="
        " (SELECT id FROM webhook_deliveries WHERE object_id = %s AND event = %s AND body <> ''"
        "  ORDER BY created_at DESC, id DESC LIMIT 1 FOR UPDATE)"
        " RETURNING id, event, status",
        (object_id, event),
    )
    return Requeued(*found) if found else None

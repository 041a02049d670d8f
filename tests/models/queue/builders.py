"""Makes calls as the queue delivers them, with caller and identity."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.ids import uuid7
from models.queue.calls import CallInfo

MERCHANT: Final = UUID(int=7)


def info(
    merchant_id: UUID | None = MERCHANT,
    key: str | None = None,
    fingerprint: bytes = b"f",
    principal: str = "pk_creator",
) -> CallInfo:
    """Return a new call, with an Idempotency-Key if one is given."""
    return CallInfo(
        call_id=uuid7(),
        merchant_id=merchant_id,
        principal_id=principal,
        request_id="r",
        idem_key=key,
        fingerprint=fingerprint,
    )

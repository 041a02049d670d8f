"""Releases shares of credits to their recipients once they waited long enough. Notified by the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from models.ledger import releases
from models.spends import signing_stops

# Due shares that one run reads; it notifies itself again after a full portion of which some were released.
SHARES_PER_STEP: Final = 1_000
# Shares of one recipient and coin in one transaction.
SHARES_AT_ONCE: Final = 200


@doorbell(queue="maintenance")
def release_splits() -> None:
    """Release due shares to their recipients.

    Shares wait while the database may lack a refund that took from them.
    """
    due = releases.due(SHARES_PER_STEP, but_for=signing_stops.doubtful())
    released = [
        isolated(receipt.recipient_id, releases.release, receipt, portion)
        for receipt, share_ids in due.items()
        for portion in _portions(share_ids)
    ]
    if sum(map(len, due.values())) == SHARES_PER_STEP and any(released):
        ring("release_splits")


def _portions(share_ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(share_ids), SHARES_AT_ONCE):
        yield share_ids[start : start + SHARES_AT_ONCE]

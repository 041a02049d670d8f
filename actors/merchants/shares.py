"""Gives shares of credits to their recipients once they waited long enough. Rung by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from models.ledger import releases
from models.spends import signing

# Of the longest due, looked at for their recipients; the ring comes again while there are more.
SHARES_PER_STEP: Final = 1_000
# Of one recipient and coin in one transaction.
SHARES_AT_ONCE: Final = 200


@doorbell(queue="maintenance")
def release_splits() -> None:
    """Release what is due to some recipients; rings itself again while more of it may be.

    Shares wait while the database may lack a refund that took from them.
    """
    doubtful = signing.doubtful()
    released = [
        isolated(receipt.recipient_id, releases.release, receipt, limit=SHARES_AT_ONCE)
        for receipt in releases.due(SHARES_PER_STEP, but_for=doubtful)
    ]
    if SHARES_AT_ONCE in released:
        ring("release_splits")

"""Forgets what has been kept long enough. Rung by the scheduler.

Answered calls, the bodies of webhooks that were delivered, e-mails, completed batches, what oracles said of addresses.
"""

from __future__ import annotations

from actors.queue.broker import doorbell, ring
from models.batches import rows as batches
from models.payout_links import emails
from models.payouts import queue as payout_queue
from models.queue import calls
from models.webhooks import outbox


@doorbell(queue="maintenance")
def prune() -> None:
    """Forget one bounded portion of each; rings itself again while there may be more."""
    portions = [
        calls.prune() == calls.PRUNED_AT_ONCE,
        outbox.prune() == outbox.PRUNED_AT_ONCE,
        emails.prune() == emails.PRUNED_AT_ONCE,
        batches.prune() == batches.PRUNED_AT_ONCE,
        payout_queue.prune_verdicts() == payout_queue.PRUNED_AT_ONCE,
    ]
    if any(portions):
        ring("prune")

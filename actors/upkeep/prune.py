"""Forgets what has been kept long enough. Rung by the scheduler.

Answered calls, the bodies of webhooks that were delivered, e-mails, completed batches, what oracles said of addresses,
what was seen in no block long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from actors.queue.broker import doorbell, ring
from models.batches import rows as batches
from models.deposits import sightings
from models.merchants import emails
from models.payouts import queue as payout_queue
from models.queue import calls
from models.webhooks import outbox

# What forgets, and how much of it at once.
PORTIONS: Final[Mapping[Callable[..., int], int]] = {
    calls.prune: 1_000,
    outbox.prune: 1_000,
    emails.prune: 1_000,
    # Each has up to 5000 items.
    batches.prune: 20,
    payout_queue.prune_verdicts: 1_000,
    sightings.prune: 1_000,
}


@doorbell(queue="maintenance")
def prune() -> None:
    """Forget one bounded portion of each; rings itself again while there may be more."""
    portions = [forget(limit=limit) == limit for forget, limit in PORTIONS.items()]
    if any(portions):
        ring("prune")

"""Forgets what has been kept long enough. Rung by the scheduler.

Answered calls, the bodies of webhooks that were delivered, e-mails, completed batches, what oracles said of addresses,
what was seen in no block long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from actors.context import context
from actors.queue.broker import doorbell, ring
from models.batches import rows as batches
from models.deposits import sightings
from models.invoices import quoting
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
    quoting.forget_rates: 10_000,
}
# Whose quotes are written at once.
OVERDUE_PER_STEP: Final = 200


@doorbell(queue="maintenance")
def prune() -> None:
    """Forget one bounded portion of each; rings itself again while there may be more."""
    overdue = quoting.close_overdue(context().catalogue, limit=OVERDUE_PER_STEP)
    portions = [forget(limit=limit) == limit for forget, limit in PORTIONS.items()]
    if any(portions) or overdue == OVERDUE_PER_STEP:
        ring("prune")

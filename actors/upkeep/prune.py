"""Deletes rows that were kept long enough. Notified by the scheduler.

These are answered calls, bodies of delivered webhooks, e-mails, completed batches, oracles' verdicts about addresses,
old sightings, and the counts of ended processes, which are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from actors.context import context
from actors.queue.broker import doorbell, ring
from models.batches import rows as batches
from models.db import counts
from models.deposits import sightings
from models.invoices import quoting
from models.merchants import emails
from models.payouts import queue as payout_queue
from models.queue import calls
from models.webhooks import outbox

# Each function that deletes rows, with the number that it deletes at once.
PORTIONS: Final[Mapping[Callable[..., int], int]] = {
    calls.prune: 1_000,
    outbox.prune: 1_000,
    emails.prune: 1_000,
    # Each has up to 5000 items.
    batches.prune: 20,
    payout_queue.prune_verdicts: 1_000,
    sightings.prune: 1_000,
    quoting.forget_rates: 10_000,
    counts.fold: 1_000,
}
# The number of invoices whose overdue quotes are written at once.
OVERDUE_PER_STEP: Final = 200


@doorbell(queue="maintenance")
def prune() -> None:
    """Delete one bounded portion of each kind; notify itself again while there may be more."""
    overdue = quoting.close_overdue(context().catalogue, limit=OVERDUE_PER_STEP)
    portions = [forget(limit=limit) == limit for forget, limit in PORTIONS.items()]
    if any(portions) or overdue == OVERDUE_PER_STEP:
        ring("prune")

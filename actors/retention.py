"""Forgets what has been kept long enough: answered calls, and the bodies of webhooks that were delivered.

Rung by the scheduler.
"""

from __future__ import annotations

from actors.broker import doorbell, ring
from models import calls, outbox


@doorbell(queue="maintenance")
def prune() -> None:
    """Forget one bounded portion of each; rings itself again while there may be more."""
    portions = [calls.prune() == calls.PRUNED_AT_ONCE, outbox.prune() == outbox.PRUNED_AT_ONCE]
    if any(portions):
        ring("prune")

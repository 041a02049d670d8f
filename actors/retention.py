"""Forgets what has been kept long enough: answered calls, the bodies of webhooks that were delivered, and e-mails.

Rung by the scheduler.
"""

from __future__ import annotations

from actors.broker import doorbell, ring
from models import calls, emails, outbox


@doorbell(queue="maintenance")
def prune() -> None:
    """Forget one bounded portion of each; rings itself again while there may be more."""
    portions = [
        calls.prune() == calls.PRUNED_AT_ONCE,
        outbox.prune() == outbox.PRUNED_AT_ONCE,
        emails.prune() == emails.PRUNED_AT_ONCE,
    ]
    if any(portions):
        ring("prune")

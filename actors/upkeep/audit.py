"""Checks the invariants on a schedule and raises an alarm in the log. Notified by the scheduler.

While the books themselves are wrong, no payout is known to be safe: all are frozen until an operator lifts the freeze.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.queue.broker import doorbell, single_flight
from models.invariants import checkpoint, deposits
from models.payouts import freezes

log = structlog.get_logger()

FROZEN_BY: Final = "audit"
# For how long one run adds rows to the checkpoint: an old ledger gets its first one in several.
ADVANCE_S: Final = 20.0


@doorbell(queue="maintenance")
def audit_ledger() -> None:
    """Log every invariant that does not hold, and freeze payouts for those about money; one process at a time."""
    with single_flight("audit") as is_mine:
        if is_mine:
            _audit()


def _audit() -> None:
    for violation in deposits.audit(is_full=checkpoint.is_full_due(), within_s=ADVANCE_S):
        log.error("invariant.broken", name=violation.name, meaning=violation.meaning, rows=repr(violation.rows))
        if violation.name in deposits.MONEY:
            freezes.freeze("all", reason=f"{violation.name}: {violation.meaning}", frozen_by=FROZEN_BY)

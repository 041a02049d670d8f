"""Checks the invariants on a schedule and raises an alarm in the log. Rung by the scheduler.

While the books themselves are wrong nobody knows what may leave: all payouts are frozen, until an operator lifts it.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.broker import doorbell
from models import freezes, invariants

log = structlog.get_logger()

FROZEN_BY: Final = "audit"


@doorbell(queue="maintenance")
def audit_ledger() -> None:
    """Log every invariant that does not hold, and freeze payouts for those about money."""
    for violation in invariants.check():
        log.error("invariant broken", name=violation.name, meaning=violation.meaning, rows=repr(violation.rows))
        if violation.name in invariants.MONEY:
            freezes.freeze("all", reason=f"{violation.name}: {violation.meaning}", frozen_by=FROZEN_BY)

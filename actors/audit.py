"""Checks the invariants on a schedule and raises an alarm in the log. Rung by the scheduler."""

from __future__ import annotations

import structlog

from actors.broker import doorbell
from models import invariants

log = structlog.get_logger()


@doorbell(queue="maintenance")
def audit_ledger() -> None:
    """Log every invariant that does not hold."""
    for violation in invariants.check():
        log.error("invariant broken", name=violation.name, meaning=violation.meaning, rows=repr(violation.rows))

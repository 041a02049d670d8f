"""Notices that the database's clock was set back, and makes what waits for a later time due. Called by actors.upkeep.

A row that waits until two hours from now, by a clock that has since gone back two hours, waits four. Promises to people
(when an invoice expires, when a share is released) keep their time; so do the times at which something happened.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from models.db.base import app_now, execute, transaction, value
from models.db.rows import ClockMark

# A moment further ahead than this was written before the clock was set back, and counts as none. Up to it, a
# transaction that began earlier may read what a later one has just written.
FUTURE_MAX_S: Final = 60
# Rows of one table in one transaction.
PORTION: Final = 5_000


class Wait(NamedTuple):
    """A column that says when a row may be looked at again."""

    table: str
    column: str
    condition: str = "true"


# Of tables that the workers write. The signer's own are read with FUTURE_MAX_S: models.spends.
WAITS: Final = (
    Wait("payouts", "due_at", "status = 'approved'"),
    Wait("withdrawal_rules", "due_at"),
    Wait("batch_items", "due_at", "status = 'pending'"),
    Wait("rate_sources", "ask_at"),
    Wait("deposit_quorums", "next_attempt_at", "agreed_at IS NULL"),
    Wait("treasury_topups", "next_attempt_at", "status = 'pending'"),
    Wait("charges", "next_attempt_at", "status = 'doubted'"),
    Wait("webhook_deliveries", "next_attempt_at", "status IN ('pending', 'retrying')"),
    Wait("webhook_deliveries", "leased_until", "status IN ('pending', 'retrying')"),
    Wait("emails", "next_attempt_at", "status = 'pending'"),
    Wait("emails", "leased_until", "status = 'pending'"),
    Wait("payout_links", "claiming_since", "status = 'claiming'"),
    # These show how long a scan has not moved.
    Wait("chain_cursors", "moved_at"),
    Wait("chain_cursors", "final_moved_at"),
)


def is_recent(moment: datetime | None, now: datetime, age_max_s: float) -> bool:
    """Return whether a moment is at most this old and not in the future; False for None."""
    return moment is not None and -FUTURE_MAX_S <= (now - moment).total_seconds() <= age_max_s


def set_back_s() -> float:
    """Return how far the clock has gone back behind the latest time that was read from it; 0.0 if it has not."""
    gone_s = value("SELECT extract(epoch FROM max(read_at) - app_now())::float8 FROM clock_mark")
    return float(gone_s) if gone_s is not None and gone_s > FUTURE_MAX_S else 0.0


def release_waits() -> int:
    """Make due what waits for a time in the future; return the number of rows. Idempotent, in bounded steps.

    A row that another transaction has locked is skipped: the worker that locked it writes its next time.
    """
    released = 0
    for wait in WAITS:
        while True:
            with transaction():
                portion = execute(
                    f"UPDATE {wait.table} SET {wait.column} = app_now() WHERE ctid = ANY (ARRAY(SELECT ctid FROM"
                    f" {wait.table} WHERE {wait.column} > app_now() AND {wait.condition} LIMIT {PORTION}"
                    " FOR UPDATE SKIP LOCKED))"
                )
            released += portion
            if portion < PORTION:
                break
    return released


def mark() -> None:
    """Keep the present time as the latest that was read."""
    ClockMark(only_row=True, read_at=app_now()).write("ON CONFLICT (only_row) DO UPDATE SET read_at = EXCLUDED.read_at")

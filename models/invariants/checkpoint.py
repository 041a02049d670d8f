"""Keeps sums of the ledger up to a row that no later commit can precede, so that an audit reads only newer rows.

Written only by the audit (actors.upkeep.audit, `sluice audit`); read by models.invariants.deposits and by the callers
that report when the books were last found right.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final, cast

from models.db.base import column, execute, in_transaction, is_true, transaction, value
from models.db.clock import FUTURE_MAX_S

# Rows that one step adds to the sums: some tenths of a second.
PORTION: Final = 200_000
# How long an advance waits for those who were writing to the ledger when it began.
WRITERS_WAIT_S: Final = 2.0
WRITERS_POLL_S: Final = 0.02
# The sums are compared with all the rows that they are of at least this often.
FULL_EVERY_S: Final = 86_400

# The differences between the sums and the rows: one or the other was changed outside of the gateway.
DIFFERENCES: Final = """
    SELECT debit_account, credit_account, currency, s.transfers, l.transfers, s.units, l.units
    FROM audit_sums s
    FULL JOIN (
        SELECT debit_account, credit_account, currency, count(*) AS transfers, sum(units) AS units
        FROM ledger_transfers WHERE id <= (SELECT through_id FROM audit_checkpoint) GROUP BY 1, 2, 3
    ) l USING (debit_account, credit_account, currency)
    WHERE (s.transfers, s.units) IS DISTINCT FROM (l.transfers, l.units)
"""

# A writer holds this lock from before it draws its row's id until it has ended.
_WRITERS: Final = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND relation = 'ledger_transfers'::regclass"
)


def advance(*, within_s: float) -> bool:
    """Add rows to the sums for at most within_s; return True if all rows that existed at the beginning were added.

    Ids are drawn before their rows are committed, so that a row may appear after others with higher ids. Therefore rows
    are added only up to the newest one found, and only after every transaction has ended that was writing to the ledger
    after that was read: no lower id can be drawn again.
    """
    if in_transaction():
        raise RuntimeError("each portion is a step of its own")
    end = time.monotonic() + within_s
    newest = int(value("SELECT COALESCE(max(id), 0) FROM ledger_transfers"))
    if not _await_writers():
        return False
    while time.monotonic() < end:
        reached = _add(newest)
        if reached is None:
            return False
        if reached >= newest:
            return True
    return False


def _await_writers() -> bool:
    writing = _writers()
    deadline = time.monotonic() + WRITERS_WAIT_S
    while writing:
        if time.monotonic() > deadline:
            return False
        time.sleep(WRITERS_POLL_S)
        writing &= _writers()
    return True


def _writers() -> set[str]:
    return set(column(_WRITERS))


def _add(newest: int) -> int | None:
    """Add one portion and return how far the sums go; None if another audit is at it."""
    with transaction():
        through: int | None = value("SELECT through_id FROM audit_checkpoint FOR UPDATE SKIP LOCKED")
        if through is None or through >= newest:
            return through
        reached = min(newest, through + PORTION)
        execute(
            "INSERT INTO audit_sums AS s (debit_account, credit_account, currency, transfers, units)"
            " SELECT debit_account, credit_account, currency, count(*), sum(units) FROM ledger_transfers"
            " WHERE id > %s AND id <= %s GROUP BY 1, 2, 3"
            " ON CONFLICT (debit_account, credit_account, currency)"
            " DO UPDATE SET transfers = s.transfers + EXCLUDED.transfers, units = s.units + EXCLUDED.units",
            (through, reached),
        )
        execute("UPDATE audit_checkpoint SET through_id = %s", (reached,))
    return reached


def note_passed(*, is_full: bool) -> None:
    """Note that the books were found right just now, and by a full audit, if so."""
    execute(
        "UPDATE audit_checkpoint SET passed_at = app_now(),"
        " full_passed_at = CASE WHEN %s THEN app_now() ELSE full_passed_at END",
        (is_full,),
    )


def passed_at() -> datetime | None:
    """Return when the books were last found right; None: not yet."""
    return cast("datetime | None", value("SELECT passed_at FROM audit_checkpoint"))


def passed_age_s() -> float | None:
    """Return how long ago the books were last found right; None: not yet."""
    sql = "SELECT extract(epoch FROM app_now() - passed_at)::float8 FROM audit_checkpoint"
    return cast("float | None", value(sql))


def is_full_due() -> bool:
    """Return whether the sums were not compared with their rows for FULL_EVERY_S."""
    return is_true(
        # In the future: the clock was set back since.
        "SELECT COALESCE(full_passed_at NOT BETWEEN app_now() - make_interval(secs => %s) AND app_now()"
        " + make_interval(secs => %s), true) FROM audit_checkpoint",
        (FULL_EVERY_S, FUTURE_MAX_S),
    )

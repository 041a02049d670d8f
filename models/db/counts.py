"""Stores the counters of all processes in PostgreSQL, a row for each. Read by GET /metrics on any web process.

Each process replaces its row every few seconds with all that it has counted since its start, so that a write may be
repeated. Rows of ended processes are added up in one row. A reader sums up all rows by one statement: the sum never
falls, whichever process is asked.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Final
from uuid import UUID, uuid4

import peewee
import psycopg2
import structlog
from psycopg2.extras import Json

from core.ids import NIL
from core.logs import counters
from core.logs.counters import Series
from models.db import base
from models.db.base import StoreUnavailableError, execute, rows, touched, transaction
from models.db.rows import ProcessCounts

log = structlog.get_logger()

EVERY_S: Final = 10.0
# A row that was not replaced for this long is added to the row of the ended processes. If its process lives on, it
# begins another row.
QUIET_MAX_S: Final = 600
_CPU: Final = "sluice_process_cpu_seconds"


class Reporter:
    """Writes the counts of one process. Safe to share between threads."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._row: UUID | None = None
        # The counts that earlier rows of this process have, and those that were written last.
        self._earlier: Series = {}
        self._written: Series = {}
        self._counted: Series = {}

    def push(self) -> None:
        """Write the counts, if there are new ones. Raises an error of PostgreSQL; the next push makes up for it."""
        with self._lock:
            counted = counters.snapshot()
            if counted != self._counted:
                self._write(counted | {(_CPU, (self._process,)): [time.process_time_ns() // 1_000]})
                self._counted = counted

    def _write(self, counted: Series) -> None:
        if self._row is not None and not self._replace(self._row, counted):
            self._row, self._earlier = None, self._written
        if self._row is None:
            # Before it is written: where a commit was cut, the next write finds the row.
            self._row = uuid4()
            ProcessCounts(process=self._row, series=_packed(counters.less(counted, self._earlier))).write()
        self._written = counted

    def _replace(self, row: UUID, counted: Series) -> bool:
        return touched(
            "UPDATE process_counts SET series = %s, noted_at = clock_timestamp() WHERE process = %s",
            (Json(_packed(counters.less(counted, self._earlier))), row),
        )


class _Process:
    reporter = Reporter("other")
    ended: threading.Event | None = None


def report(process: str) -> None:
    """Write this process's counts every EVERY_S from now on, in a thread of its own. Each process calls it once."""
    _Process.reporter, _Process.ended = Reporter(process), threading.Event()
    threading.Thread(target=_keep_writing, args=(_Process.ended,), name="counts", daemon=True).start()


def end() -> None:
    """Stop the thread, and write the last counts. Does nothing in a process that does not report."""
    if _Process.ended is not None:
        _Process.ended.set()
        push()


def push() -> None:
    """Write this process's counts now, if PostgreSQL takes them."""
    with contextlib.suppress(psycopg2.Error, peewee.PeeweeException, StoreUnavailableError):
        _Process.reporter.push()


def _keep_writing(ended: threading.Event) -> None:
    while not ended.wait(EVERY_S):
        push()
        base.release()
    base.close()


def read() -> Series:
    """Return the sum of the counts of all processes, running or ended."""
    return counters.added(_unpacked(series) for (series,) in rows("SELECT series FROM process_counts"))


def fold(*, limit: int) -> int:
    """Add rows of ended processes to the row of all ended ones; return their number. Opens a transaction."""
    with transaction():
        # Locked first: another process that folds waits here, and then finds the rows gone.
        execute("INSERT INTO process_counts (process, series) VALUES (%s, '[]') ON CONFLICT DO NOTHING", (NIL,))
        old = rows(
            "SELECT process, series FROM process_counts WHERE process = %s"
            " OR noted_at < clock_timestamp() - make_interval(secs => %s) ORDER BY process LIMIT %s FOR UPDATE",
            (NIL, QUIET_MAX_S, limit + 1),
        )
        total = counters.added(_unpacked(series) for _, series in old)
        execute("UPDATE process_counts SET series = %s WHERE process = %s", (Json(_packed(total)), NIL))
        ended = [process for process, _ in old if process != NIL]
        return execute("DELETE FROM process_counts WHERE process = ANY(%s)", (ended,))


def _packed(series: Series) -> list[list[Any]]:
    return [[family, labels, numbers] for (family, labels), numbers in series.items()]


def _unpacked(packed: Any) -> Series:
    """Return the stored series of known families; another version, or a stranger with a web login, may have others."""
    listed = packed if isinstance(packed, list) else []
    return {(each[0], tuple(each[1])): each[2] for each in listed if counters.is_series(each)}

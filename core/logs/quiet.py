"""Leaves out log lines that repeat: those of a store's outage, and warnings that were written within a minute.

A filter of the process's one handler, set by core.logs.log.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from core.logs import counters
from core.logs.outages import REFUSALS, StoreAwayError, is_any_away

EVERY_S: Final = 60.0
# Different lines that are remembered. Beyond that all are forgotten, and each is written once more.
KEYS_MAX: Final = 1_000
CAUSES_MAX: Final = 8
SERVER_ERROR: Final = 500
COUNTED: Final = frozenset({"warning", "error", "critical"})
# Facts that differ between lines which say the same.
VOLATILE: Final = frozenset({"timestamp", "request_id", "call_id", "took_ms", "late_ms", "so_far", "exc_info"})
OUTAGES: Final = frozenset({"store.away", "store.back", "store.refused"})
# Each repeats, for its own part of the work, that a store is away.
CONSEQUENCES: Final = frozenset({
    "address_pool.not_filled_ahead", "attention.unreadable", "call.answer_lost", "call.store_refused",
    "call.undecided", "database.position_unknown", "doorbell.not_rung", "limits.redis_away", "metrics.unreadable",
    "queue.redis_away", "readiness.failed", "scheduler.redis_away", "store.unavailable", "webhook.store_unavailable",
})  # fmt: skip


class Quiet(logging.Filter):
    """Lets each warning and error through once a minute, the next time with the number that was left out.

    Critical lines always pass, and so do those below warnings.
    """

    def __init__(self, *, is_command: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """Take if the process is a command, which ends by a line about a store that is away."""
        super().__init__()
        self._is_command = is_command
        self._clock = clock
        self._lock = threading.Lock()
        # When a line was written last, and how many were left out since.
        self._written: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if a line is to be written; count it then."""
        if self._is_command and _facts(record)["event"] in OUTAGES:
            return False
        if record.levelno < logging.CRITICAL and (_is_consequence(record) or self._is_repeated(record)):
            return False
        level = record.levelname.lower()
        if level in COUNTED:
            counters.count("sluice_log_lines", level)
        return True

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return False
        key, now = _key(record), self._clock()
        with self._lock:
            at, left_out = self._written.get(key, (float("-inf"), 0))
            if now - at < EVERY_S:
                self._written[key] = at, left_out + 1
                return True
            if len(self._written) >= KEYS_MAX:
                self._written.clear()
            self._written[key] = now, 0
        record.repeated = left_out
        return False


def show_repeats(_logger: object, _method: str, event: Any) -> Any:
    """Add the number of lines left out before this one. A processor of structlog."""
    if repeated := getattr(event.get("_record"), "repeated", 0):
        event["repeated"] = repeated
    return event


def _facts(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return an event's facts; those of a library's line are its text."""
    return record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}


def _key(record: logging.LogRecord) -> object:
    facts = sorted((name, repr(value)) for name, value in _facts(record).items() if name not in VOLATILE)
    error = _error(record)
    return record.name, record.levelno, tuple(facts), None if error is None else repr(error)


def _is_consequence(record: logging.LogRecord) -> bool:
    if any(_is_outage(error) for error in _causes(_error(record))):
        return True
    facts = _facts(record)
    is_named = facts["event"] in CONSEQUENCES or (
        facts["event"] == "request.answered" and facts.get("status", 0) >= SERVER_ERROR
    )
    return is_named and is_any_away()


def _is_outage(error: BaseException) -> bool:
    return isinstance(error, StoreAwayError) or getattr(error, "pgcode", None) in REFUSALS


def _error(record: logging.LogRecord) -> BaseException | None:
    given = record.exc_info or _facts(record).get("exc_info")
    if given is True:
        return sys.exc_info()[1]
    if isinstance(given, tuple):
        error: BaseException | None = given[1]
        return error
    return given if isinstance(given, BaseException) else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from; one that was merely being handled is no cause."""
    for _ in range(CAUSES_MAX):
        if error is None:
            return
        yield error
        error = error.__cause__

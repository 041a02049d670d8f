"""Keeps which stores are away, and says so once: a line when a store goes, and one when it is back.

Noted by models.db.base and actors.queue.link. core.logs.quiet leaves out the lines that only repeat it.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import structlog

from core.logs.throttle import LogThrottle

log = structlog.get_logger("sluice")

# A store that comes and goes is reported once in this time.
EVERY_S: Final = 60.0
# PostgreSQL's codes if it is read-only, or its disk, connections or memory are used up.
REFUSALS: Final = frozenset({"25006", "53100", "53200", "53300"})


class StoreAwayError(Exception):
    """Marks the errors by which a store's absence reaches its users."""


class _Process:
    """The stores that are away: since when, and whether that was reported."""

    lock: threading.Lock = threading.Lock()
    away: Final[dict[str, tuple[float, bool]]] = {}
    throttle: LogThrottle = LogThrottle(every_s=EVERY_S)


def note_away(store: str, reason: str) -> None:
    """Record that a store did not answer; reported once until it is back."""
    if store in _Process.away:
        return
    with _Process.lock:
        if store in _Process.away:
            return
        is_reported = _Process.throttle.allows(store)
        _Process.away[store] = time.monotonic(), is_reported
    if is_reported:
        log.error("store.away", store=store, reason=first_line(reason))


def note_back(store: str) -> None:
    """Record that a store answers. Costs nothing while none is away."""
    if store not in _Process.away:
        return
    with _Process.lock:
        since, is_reported = _Process.away.pop(store, (0.0, False))
    if is_reported:
        log.warning("store.back", store=store, away_s=round(time.monotonic() - since, 1))


def note_refusal(store: str, reason: str) -> None:
    """Report, once a minute, that a store answers and takes no write or connection."""
    if _Process.throttle.allows(f"{store} refuses"):
        log.error("store.refused", store=store, reason=first_line(reason))


def is_any_away() -> bool:
    """Return True while a store is known to be away."""
    return bool(_Process.away)


def first_line(text: str) -> str:
    """Return the reason in a driver's message, whose further lines repeat it."""
    return next(iter(text.splitlines()), "")

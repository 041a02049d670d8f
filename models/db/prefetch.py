"""Refreshes cached values that were used in the last minute, shortly before they go stale.

Used by caches that keep rows of PostgreSQL for a second, so that the first request after a pause reads nothing. Only
processes with waiting callers read ahead: their entry points allow it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

from models.db import base

# Before the second of those caches is over.
AHEAD_S: Final = 0.7
USED_S: Final = 60.0
# A process that uses more does not idle, and its requests read for themselves.
READS_MAX: Final = 16

Read = tuple[Callable[..., object], tuple[str, ...]]


class ReadAhead:
    """Repeats reads in a thread of its own, which begins with the first use and ends with the process."""

    def __init__(self) -> None:
        self._is_allowed = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._used: dict[Read, float] = {}

    def allow(self) -> None:
        """Begin with the next use, which is after all forks."""
        self._is_allowed = True

    def note(self, read: Callable[..., object], *names: str) -> None:
        """Have read(*names) called for a minute from now; it runs concurrently with the reads of requests."""
        used = read, names
        if not self._is_allowed or (len(self._used) >= READS_MAX and used not in self._used):
            return
        self._used[used] = time.monotonic()
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._keep_reading, name="ahead", daemon=True)
                    self._thread.start()

    def read_all(self) -> None:
        """Read once what was used lately."""
        since = time.monotonic() - USED_S
        for used, used_at in list(self._used.items()):
            if used_at < since:
                del self._used[used]
                continue
            read, names = used
            # A caller that needs a stale value reads it itself, and gets the error.
            with contextlib.suppress(Exception):
                read(*names)

    def _keep_reading(self) -> None:
        while True:
            time.sleep(AHEAD_S)
            self.read_all()
            base.release()


ahead: Final = ReadAhead()

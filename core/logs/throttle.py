"""Limits how often a log line repeats. Called by actors whose ticks are frequent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class LogThrottle:
    """Lets each key through once per `every_s` seconds. Safe to share between threads."""

    def __init__(self, *, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._passed: dict[str, float] = {}

    def allows(self, key: str) -> bool:
        """Return whether this key may be logged now; if so, it counts as logged."""
        now = self._clock()
        with self._lock:
            if now - self._passed.get(key, float("-inf")) < self._every_s:
                return False
            self._passed[key] = now
            return True

"""Says something at most once in a while, however often it is true. Called by actors that are rung all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Seldom:
    """Lets each topic pass once, and again after `every_s`. Safe to share between threads."""

    def __init__(self, *, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._passed: dict[str, float] = {}

    def passes(self, topic: str) -> bool:
        """Whether it is time to say this."""
        now = self._clock()
        with self._lock:
            if now - self._passed.get(topic, float("-inf")) < self._every_s:
                return False
            self._passed[topic] = now
            return True

"""Hands messages to as few worker threads as are busy at once. Used by actors.queue.broker.

A thread keeps its connections to PostgreSQL and Redis. dramatiq's queue wakes idle threads in turn, so that a quiet
process with twenty threads opens forty connections for work that two threads could do.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, PriorityQueue
from typing import Any


class FewestThreadsQueue(PriorityQueue[Any]):
    """Takes the place of dramatiq's queue; of the idle threads the one that came first of all gets the message."""

    def __init__(self) -> None:
        super().__init__()
        self._ranks: dict[int, int] = {}
        # The threads that wait, by rank. Guarded by `mutex`, as everything here.
        self._waiting: dict[int, threading.Condition] = {}

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - queue's own
        """Return a message. Raises Empty after the timeout, at once if not `block`."""
        if not block or timeout is None:
            return super().get(block, timeout)
        ends_at = time.monotonic() + timeout
        with self.mutex:
            while not self._qsize():
                remaining_s = ends_at - time.monotonic()
                if remaining_s <= 0:
                    raise Empty
                self._wait(remaining_s)
            return self._get()

    def _put(self, item: Any) -> None:
        """Add a message and wake one thread; called under `mutex`."""
        super()._put(item)
        if self._waiting:
            self._waiting.pop(min(self._waiting)).notify()

    def _wait(self, seconds: float) -> None:
        rank = self._ranks.setdefault(threading.get_ident(), len(self._ranks))
        self._waiting[rank] = turn = threading.Condition(self.mutex)
        turn.wait(seconds)
        # Already gone if a message woke the thread, not if its time ran out.
        self._waiting.pop(rank, None)

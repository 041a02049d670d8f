"""Hands messages to as few worker threads as are busy at once. Used by actors.queue.broker.

A thread keeps its connections to PostgreSQL and Redis. dramatiq's queue wakes idle threads in turn, so that a quiet
process with twenty threads opens forty connections for work that two threads could do.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, PriorityQueue
from typing import Any

from actors.queue.consumer import STOPPING_LOOK_S


class FewestThreadsQueue(PriorityQueue[Any]):
    """Replaces dramatiq's queue; of the idle threads, the one that first used the queue gets the message."""

    def __init__(self) -> None:
        super().__init__()
        self._ranks: dict[int, int] = {}
        # The waiting threads, by rank. Guarded by `mutex`, like all fields here.
        self._waiting: dict[int, threading.Condition] = {}
        self._is_stopping = False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ARG002, FBT001, FBT002 - queue's own
        """Return a message, however long it takes to come. Raises Empty once the worker stops, at once if not `block`.

        dramatiq's threads ask with a timeout so that they notice their end; stop() wakes them instead.
        """
        if not block:
            return super().get(block=False)
        with self.mutex:
            while not self._is_stopping and not self._qsize():
                self._wait()
            if not self._is_stopping:
                return self._get()
        # The thread asks again until it is stopped, which is about to happen.
        time.sleep(STOPPING_LOOK_S)
        raise Empty

    def stop(self) -> None:
        """Stop threads from taking messages, and wake those that wait."""
        with self.mutex:
            self._is_stopping = True
            for turn in self._waiting.values():
                turn.notify()

    def _put(self, item: Any) -> None:
        """Add a message and wake one thread; called under `mutex`."""
        super()._put(item)
        if self._waiting:
            self._waiting.pop(min(self._waiting)).notify()

    def _wait(self) -> None:
        rank = self._ranks.setdefault(threading.get_ident(), len(self._ranks))
        self._waiting[rank] = turn = threading.Condition(self.mutex)
        turn.wait()
        # Already gone if a message woke the thread.
        self._waiting.pop(rank, None)

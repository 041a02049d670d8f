"""Keeps connections that no thread uses, for the next thread that needs one. Used by models.db.base and actors.queue.

The connection given back last is taken first. So a process holds as many as it has used at once of late: those that a
crowd left behind are closed once they are unused for IDLE_MAX_S. It opens nothing itself.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

C = TypeVar("C")

# After this long without use a connection is closed, unless it is the last one.
IDLE_MAX_S: Final = 20.0
IDLE_LOOK_S: Final = 5.0


class Unused(Generic[C]):
    """The unused connections of this process to one server. Safe to share between threads."""

    def __init__(self, *, is_open: Callable[[C, float], bool], close: Callable[[C], object]) -> None:
        """Take how a connection is looked at, with the time.monotonic() of its last use, and how it is closed."""
        self._is_open, self._close = is_open, close
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Drop all without closing them: a forked child must not speak on its parent's connections."""
        # With the time of the last use, the latest at the right end. Each operation on it is atomic.
        self._unused: deque[tuple[float, C]] = deque()
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._unused)

    def take(self) -> C | None:
        """Return the connection used last; None if the process holds no unused one that is open."""
        with contextlib.suppress(IndexError):
            while True:
                used_at, connection = self._unused.pop()
                if self._is_open(connection, used_at):
                    return connection
                self._close(connection)
        return None

    def give_back(self, connection: C) -> None:
        """Keep a connection in which nothing is under way, and close those that have not been used for a while."""
        now = time.monotonic()
        self._unused.append((now, connection))
        if now >= self._look_at:
            self.close_idle(now)

    def close_idle(self, now: float) -> None:
        """Close the connections that have not been used for a while, except the one used last."""
        self._look_at = now + IDLE_LOOK_S
        with contextlib.suppress(IndexError):
            while len(self._unused) > 1:
                oldest = self._unused.popleft()
                if oldest[0] >= now - IDLE_MAX_S:
                    self._unused.appendleft(oldest)
                    return
                self._close(oldest[1])

    def close_all(self) -> None:
        """Close every unused connection."""
        with contextlib.suppress(IndexError):
            while True:
                self._close(self._unused.pop()[1])


class _All:
    """All pools of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: weakref.WeakSet[Unused[Any]] = weakref.WeakSet()

    def add(self, pool: Unused[Any]) -> None:
        with self._lock:
            self._pools.add(pool)

    def listed(self) -> list[Unused[Any]]:
        with self._lock:
            return list(self._pools)

    def forget(self) -> None:
        # Another thread of the parent may have had the lock.
        self._lock = threading.Lock()
        for pool in self.listed():
            pool.forget()


_all: Final = _All()
os.register_at_fork(after_in_child=_all.forget)


def close_idle() -> None:
    """Close the idle connections of all pools; for a thread that wakes every few seconds anyway.

    A burst may be the last use for hours, and only a later use of the same pool would look.
    """
    now = time.monotonic()
    for pool in _all.listed():
        pool.close_idle(now)

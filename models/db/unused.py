"""Keeps connections to PostgreSQL that no thread uses, for the next thread that needs one. Used by models.db.base.

The connection given back last is taken first. So a process holds as many as it has used at once of late.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from models.db.silence import WatchedConnection

# After this long without use a connection is closed, unless it is the last one.
IDLE_MAX_S: Final = 20.0
IDLE_LOOK_S: Final = 5.0


class Unused:
    """The unused connections of this process. Safe to share between threads."""

    def __init__(self, *, is_open: Callable[[WatchedConnection], bool]) -> None:
        self._is_open = is_open
        self._begin()

    def _begin(self) -> None:
        # With the time of the last use, the latest at the right end. Each operation on it is atomic.
        self._held: deque[tuple[float, WatchedConnection]] = deque()
        self._look_at = 0.0

    # A forked child must not speak on its parent's connections.
    forget = _begin

    def take(self) -> WatchedConnection | None:
        """Return the connection used last; None if the process holds no unused one that is open."""
        with contextlib.suppress(IndexError):
            while True:
                _, connection = self._held.pop()
                if self._is_open(connection):
                    return connection
                connection.close()
        return None

    def give_back(self, connection: WatchedConnection, *, close: Callable[[WatchedConnection], object]) -> None:
        """Keep a connection in which nothing is under way, and close those that have not been used for a while."""
        now = time.monotonic()
        self._held.append((now, connection))
        if now < self._look_at:
            return
        self._look_at = now + IDLE_LOOK_S
        with contextlib.suppress(IndexError):
            while (oldest := self._held.popleft())[0] < now - IDLE_MAX_S:
                close(oldest[1])
            self._held.appendleft(oldest)

    def close_all(self, *, close: Callable[[WatchedConnection], object]) -> None:
        """Close every unused connection."""
        with contextlib.suppress(IndexError):
            while True:
                close(self._held.pop()[1])

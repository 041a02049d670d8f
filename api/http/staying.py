"""Keeps a connection in its thread for a moment after an answer: a busy client sends its next request at once.

Used by api.http.worker in its pool's threads. Through the loop, that request would cost two switches of thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from api.http.arrival import Arrival, Verdict
from api.http.connection import Connection

# No request waits longer than this for a thread that stays; 15 ms gained nothing more.
STAY_MS: Final = 5
# One thread in this number may stay.
STAYING_SHARE: Final = 2


class Staying:
    """Lets up to `threads_max` threads wait for a next request. `is_wanted`: True if they are needed elsewhere."""

    def __init__(self, *, threads_max: int, is_wanted: Callable[[], bool]) -> None:
        self._threads_max = threads_max
        self._is_wanted = is_wanted
        self._staying: set[Connection] = set()

    def holds_next(self, conn: Connection) -> bool:
        """Wait a moment. Return True if the next request is there whole, for the calling thread to answer.

        The loop handles every other case; it finds the bytes that came behind the last request.
        """
        if self._is_wanted() or len(self._staying) >= self._threads_max or conn.unreader.buf.getvalue():
            return False
        self._staying.add(conn)
        try:
            return conn.wait(STAY_MS) and self._receive(conn)
        except OSError:
            return False
        finally:
            self._staying.discard(conn)

    def _receive(self, conn: Connection) -> bool:
        conn.began_at = time.monotonic()
        arrived = conn.receive() or b""
        conn.unreader.hold(arrived)
        return Arrival(conn.began_at).add(arrived) is Verdict.WHOLE

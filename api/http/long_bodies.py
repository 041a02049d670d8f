"""Requests whose bodies nobody waits for. Used by api.http.worker in its one loop.

Their bodies are too long or of no announced length, so that the loop cannot tell their end, and they are refused by
what has come. Few threads do that; the other requests wait here, counted by source, and each source has one turn after
the other.
"""

from __future__ import annotations

from typing import Final

from api.http.connection import Callback, Connection
from api.http.crowd import Crowd
from api.http.turns import Turns
from api.limits.sources import Source

# One thread in so many may refuse such bodies.
LONG_SHARE: Final = 4


class LongBodies:
    """Requests whose long bodies wait for one of few threads; ended and refuse are called with one that waited."""

    def __init__(self, crowd: Crowd, *, threads: int, serve: Callback, ended: Callback, refuse: Callback) -> None:
        self._crowd = crowd
        self._free = max(1, threads // LONG_SHARE)
        self._serve = serve
        self._ended = ended
        self._refuse = refuse
        self._turns = Turns()
        # In the order in which they came.
        self._waiting: dict[Connection, float] = {}

    def add(self, conn: Connection, source: Source) -> None:
        """Serve a request as soon as a thread is free and it is its source's turn."""
        self._waiting[conn] = conn.began_at
        self._turns.add(conn, source)
        self._crowd.add(conn, source, self._end, is_open=True)
        self._begin()

    def answered(self) -> None:
        """Note that the thread of a long body is free again."""
        self._free += 1
        self._begin()

    def refuse_begun_before(self, moment: float) -> None:
        """Refuse the requests that began before a moment."""
        while self._waiting:
            conn, began_at = next(iter(self._waiting.items()))
            if began_at >= moment:
                break
            self._take_out(conn)
            self._refuse(conn)

    def _begin(self) -> None:
        while self._free and self._turns:
            conn = self._turns.take()
            del self._waiting[conn]
            self._crowd.discard(conn)
            self._free -= 1
            self._serve(conn)

    def _end(self, conn: Connection) -> None:
        self._take_out(conn)
        self._ended(conn)

    def _take_out(self, conn: Connection) -> None:
        self._turns.remove(conn, conn.source)
        del self._waiting[conn]
        self._crowd.discard(conn)

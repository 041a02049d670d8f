"""Sends the rest of answers without a thread. Used by api.http.worker in its one loop.

A thread sends as much of an answer as the socket takes at once. The rest waits here for a client that reads slowly or
not at all: for a limited time, and within a limited sum of bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from selectors import EVENT_WRITE, BaseSelector
from typing import Final

from api.http.connection import Callback, Connection
from api.http.crowd import Crowd, greediest
from api.limits.sources import Source

# Unsent bytes of all answers together.
UNSENT_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Rest:
    is_kept: bool
    until: float


class Sending:
    """Answers that their clients have not yet taken. done: called with a connection after its answer was sent."""

    def __init__(
        self,
        poller: BaseSelector,
        crowd: Crowd,
        *,
        done: Callable[[Connection, bool], None],
        dropped: Callback,
        unsent_bytes_max: int = UNSENT_BYTES_MAX,
    ) -> None:
        self._poller = poller
        self._crowd = crowd
        self._done = done
        self._dropped = dropped
        self._unsent_bytes_max = unsent_bytes_max
        # In the order of their deadlines.
        self._rests: dict[Connection, _Rest] = {}
        self._held_bytes: dict[Connection, int] = {}
        self._sum_bytes = 0

    def begin(self, conn: Connection, source: Source, *, is_kept: bool, limit_s: float) -> None:
        """Send the rest of an answer as its client takes it, within limit_s; is_kept is passed to `done`."""
        self._rests[conn] = _Rest(is_kept, time.monotonic() + limit_s)
        self._held_bytes[conn] = conn.sock.held_bytes
        self._sum_bytes += self._held_bytes[conn]
        conn.poll(self._poller, self._send, EVENT_WRITE)
        self._crowd.add(conn, source, self._drop, is_open=True)
        while self._sum_bytes > self._unsent_bytes_max:
            self._drop(greediest(self._held_bytes))

    def end_overdue(self, now: float) -> None:
        """Drop the connections whose clients took too long."""
        while self._rests:
            conn, rest = next(iter(self._rests.items()))
            if rest.until >= now:
                break
            self._drop(conn)

    def _send(self, conn: Connection) -> None:
        # The loop may have read this event before another one ended the connection.
        if conn not in self._rests:
            return
        try:
            is_sent = conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if is_sent:
            rest = self._forget(conn)
            self._done(conn, rest.is_kept)

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        conn.abort()
        self._dropped(conn)

    def _forget(self, conn: Connection) -> _Rest:
        conn.unpoll(self._poller)
        self._crowd.discard(conn)
        self._sum_bytes -= self._held_bytes.pop(conn)
        return self._rests.pop(conn)

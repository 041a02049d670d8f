"""Lets clients close first after their last answer. Used by api.http.worker in its one loop.

Bytes that a client still sends are discarded: unread bytes would reset the connection and lose the answer. Gunicorn
waits for the client in its own loop, so that all other clients would wait too.
"""

from __future__ import annotations

import socket
import time
from selectors import BaseSelector
from typing import Final

from api.http.connection import Callback, Connection
from api.http.crowd import Crowd

LINGER_S: Final = 2.0
LINGER_BYTES_MAX: Final = 64 * 1024


class Lingering:
    """Waits a short time for clients to close. `drop` ends a connection that nothing else uses."""

    def __init__(self, poller: BaseSelector, crowd: Crowd, *, drop: Callback) -> None:
        self._poller = poller
        self._crowd = crowd
        self._drop = drop
        # The deadline of each, in that order.
        self._until: dict[Connection, float] = {}

    def begin(self, conn: Connection) -> None:
        """Shut the sending side: nothing more will be sent."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        self._until[conn] = time.monotonic() + LINGER_S
        self._drain(conn)
        if conn in self._until:
            self._crowd.add(conn, self._crowd.peer_source(conn), self._end)

    def end_overdue(self, now: float) -> None:
        """Close the connections whose time is over."""
        while self._until and next(iter(self._until.values())) < now:
            self._end(next(iter(self._until)))

    def _drain(self, conn: Connection) -> None:
        if conn not in self._until:
            return
        try:
            chunk = conn.receive()
        except OSError:
            chunk = b""
        if chunk is not None:
            conn.drained_bytes += len(chunk)
        if chunk == b"" or conn.drained_bytes > LINGER_BYTES_MAX:
            self._end(conn)
        else:
            conn.poll(self._poller, self._drain)

    def _end(self, conn: Connection) -> None:
        conn.unpoll(self._poller)
        del self._until[conn]
        self._drop(conn)

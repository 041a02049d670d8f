"""Holds a client's connection in the gunicorn worker, whose one loop watches it.

Used by api.http.worker and its parts.
"""

from __future__ import annotations

import contextlib
import io
import select
import socket
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ, BaseSelector
from typing import Any, Final

from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn  # type: ignore[import-untyped]

from api.http.errors import error_body
from core.errors import DomainError
from core.ids import uuid7

Callback = Callable[["Connection"], None]

CHUNK_BYTES: Final = 64 * 1024


class ArrivedUnreader(SocketUnreader):  # type: ignore[misc]
    """Gives the parser what has arrived, and lets it read on only if the loop did not wait for all."""

    is_whole = False
    # The parser wanted more of what was taken for whole: where the next request begins is unknown.
    is_short = False

    def hold(self, arrived: bytes, *, is_whole: bool) -> None:
        """Begin a request with these bytes; is_whole: nothing of it is still to come."""
        self.buf = io.BytesIO(arrived)
        self.is_whole = is_whole
        self.is_short = False

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return more from the socket, or nothing as if the client had closed."""
        self.is_short = self.is_whole
        return b"" if self.is_whole else super().chunk(size_hint)


class Connection(TConn):  # type: ignore[misc]
    """A client's connection. Its socket blocks, for the threads; the loop says with every use that it does not wait."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The loop has waited already.
        self.data_ready = True
        self.unreader = ArrivedUnreader(self.sock)
        self.began_at = 0.0
        self.is_long = False
        self.is_polled = False
        self.drained_bytes = 0
        self._watch = select.poll()
        self._watch.register(self.sock, select.POLLIN)

    def init(self) -> None:
        """Make it ready for a thread that answers a request; gunicorn calls it once more."""
        super().init()
        self.parser.unreader = self.unreader

    def wait(self, limit_ms: int) -> bool:
        """Wait so long at most, and return whether there is something to receive; for a thread."""
        return bool(self._watch.poll(limit_ms))

    def receive(self) -> bytes | None:
        """Return what has come, nothing if the client has closed, None if there is nothing yet. Never waits."""
        try:
            return bytes(self.sock.recv(CHUNK_BYTES, socket.MSG_DONTWAIT))
        except (BlockingIOError, InterruptedError):
            return None

    def send(self, data: bytes) -> None:
        """Send what fits into the socket's buffer; what is said from the loop does. Never waits."""
        with contextlib.suppress(OSError):
            self.sock.send(data, socket.MSG_DONTWAIT)

    def shut(self, how: int) -> None:
        """End one direction, or both, for the thread that waits for it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(how)

    def poll(self, poller: BaseSelector, callback: Callback) -> None:
        """Have the loop call back when there is something to receive."""
        if not self.is_polled:
            self.is_polled = True
            # Gunicorn's loop passes the socket as well.
            poller.register(self.sock, EVENT_READ, partial(_call, callback, self))

    def unpoll(self, poller: BaseSelector) -> None:
        """Have the loop look away."""
        if self.is_polled:
            self.is_polled = False
            poller.unregister(self.sock)


def _call(callback: Callback, conn: Connection, _socket: socket.socket) -> None:
    callback(conn)


def refusal(error: DomainError) -> bytes:
    """Return the last answer on a connection, to what never reached the application."""
    return response(error, str(uuid7()))


def response(error: DomainError, request_id: str) -> bytes:
    """Return an error as it goes over the wire, in the envelope of all errors."""
    body = error_body(error)
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-Id: {request_id}",
        *(() if error.retry_after_s is None else (f"Retry-After: {error.retry_after_s}",)),
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii") + body

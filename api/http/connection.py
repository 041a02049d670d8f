"""Holds a client's connection in the gunicorn worker, whose one loop watches it.

Used by api.http.worker and its parts.
"""

from __future__ import annotations

import contextlib
import io
import select
import socket
import struct
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ, BaseSelector
from typing import Any, Final, cast

from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn  # type: ignore[import-untyped]

from api.http.errors import error_body
from api.limits.sources import Source
from core.errors import DomainError
from core.ids import uuid7

Callback = Callable[["Connection"], None]

CHUNK_BYTES: Final = 64 * 1024


# Closing then resets the connection and discards bytes that the kernel has not sent.
_RESET: Final = struct.pack("ii", 1, 0)
# Buffers that the kernel takes in one call; an answer has two, its head and its body.
_BUFFERS_MAX: Final = 64


class ClientSocket(socket.socket):
    """A client's socket. Sending never waits: it collects an answer, and `flush` sends as much as fits at once."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.unsent: list[bytes | memoryview] = []

    @property
    def held_bytes(self) -> int:
        """Return the memory that the unsent part of an answer holds; a view keeps its whole object."""
        return sum(len(cast("bytes", part.obj)) if isinstance(part, memoryview) else len(part) for part in self.unsent)

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - the standard library's signature
        """Do nothing if the socket blocks already: gunicorn calls this for every request."""
        if not flag or self.gettimeout() is not None:
            super().setblocking(flag)

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as many bytes as fit; return their number, which may be 0."""
        try:
            return super().send(data, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def sendall(self, data: Any, _flags: int = 0) -> None:
        """Collect bytes of an answer. Gunicorn writes head and body by this."""
        self.unsent.append(data)

    def flush(self) -> bool:
        """Send as many of the collected bytes as fit. Return True if none is left. Discards them on OSError."""
        unsent = self.unsent
        try:
            sent = self.sendmsg(unsent[:_BUFFERS_MAX], (), socket.MSG_DONTWAIT) if unsent else 0
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            unsent.clear()
            raise
        while unsent and sent >= len(unsent[0]):
            sent -= len(unsent.pop(0))
        if sent:
            unsent[0] = memoryview(unsent[0])[sent:]
        return not unsent


class ArrivedUnreader(SocketUnreader):  # type: ignore[misc]
    """Gives the parser the bytes that have arrived, and never reads the socket."""

    # The parser wanted more than arrived, so the beginning of the next request is unknown.
    is_short = False

    def hold(self, arrived: bytes) -> None:
        """Begin a request with these bytes."""
        self.buf = io.BytesIO(arrived)
        self.is_short = False

    def head(self) -> bytes:
        """Return the head of the current request."""
        head, end, _ = self.buf.getvalue().partition(b"\r\n\r\n")
        return bytes(head + end)

    def chunk(self, _size_hint: int | None = None) -> bytes:
        """Return nothing, as if the client had closed."""
        self.is_short = True
        return b""


class Connection(TConn):  # type: ignore[misc]
    """A client's connection. Its socket blocks, for the threads; the loop marks each of its calls as non-blocking."""

    def __init__(self, cfg: Any, client: socket.socket, *addresses: Any) -> None:
        super().__init__(cfg, ClientSocket(client), *addresses)
        # The loop has already waited for data.
        self.data_ready = True
        self.unreader = ArrivedUnreader(self.sock)
        self.began_at = 0.0
        self.is_long = False
        self.is_polled = False
        self.drained_bytes = 0
        # The peer's source, once it was computed.
        self.peer_source: Source | None = None
        # The source that api.http.crowd counts it under while the loop waits for its client, and how to end it then.
        self.source: Source = ()
        self.end: Callback = _ignore
        self.closed: Callback = _ignore
        self._watch = select.poll()
        self._watch.register(self.sock, select.POLLIN)

    def init(self) -> None:
        """Prepare the connection for a thread that answers a request; gunicorn calls it a second time."""
        super().init()
        self.parser.unreader = self.unreader

    def wait(self, limit_ms: int) -> bool:
        """Wait for data, at most this long. Return True if there is some. For a thread."""
        return bool(self._watch.poll(limit_ms))

    def receive(self) -> bytes | None:
        """Return the bytes that have come, b"" if the client has closed, None if nothing has come yet. Never waits."""
        try:
            return bytes(self.sock.recv(CHUNK_BYTES, socket.MSG_DONTWAIT))
        except (BlockingIOError, InterruptedError):
            return None

    def send(self, data: bytes) -> None:
        """Send as much as fits into the socket's buffer, which all messages from the loop do. Never waits."""
        with contextlib.suppress(OSError):
            self.sock.send(data)

    def shut(self, how: int) -> None:
        """Shut one direction, or both, which wakes the thread that waits for it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(how)

    def poll(self, poller: BaseSelector, callback: Callback, events: int = EVENT_READ) -> None:
        """Have the loop call back when there are bytes to receive, or room to send."""
        if not self.is_polled:
            self.is_polled = True
            # Gunicorn's loop passes the socket as well.
            poller.register(self.sock, events, partial(_call, callback, self))

    def unpoll(self, poller: BaseSelector) -> None:
        """Have the loop no longer watch the socket."""
        if self.is_polled:
            self.is_polled = False
            poller.unregister(self.sock)

    def abort(self) -> None:
        """Close with a reset, so that the client sees an error, not a short answer, and the kernel keeps no bytes."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def close(self, graceful: bool = False) -> None:  # noqa: FBT001, FBT002 - gunicorn's signature
        """Close the socket, and stop counting the connection."""
        self.closed(self)
        super().close(graceful)


def _ignore(_conn: Connection) -> None: ...


def _call(callback: Callback, conn: Connection, _socket: socket.socket) -> None:
    callback(conn)


def refusal(error: DomainError) -> bytes:
    """Return the last answer on a connection, for a request that never reached the application."""
    return response(error, str(uuid7()))


def response(error: DomainError, request_id: str) -> bytes:
    """Return an error as bytes of HTTP, in the envelope of all errors."""
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

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


# Closing resets the connection, and throws away what the kernel has not sent.
_RESET: Final = struct.pack("ii", 1, 0)
# Buffers that the kernel takes in one call; an answer has two, its head and its body.
_BUFFERS_MAX: Final = 64


class ClientSocket(socket.socket):
    """A client's socket, on which sending never waits. An answer is collected, and `flush` sends what fits at once."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.unsent: list[bytes | memoryview] = []

    @property
    def held_bytes(self) -> int:
        """Return how many bytes of memory the unsent part of an answer holds: a view keeps all of its object."""
        return sum(len(cast("bytes", part.obj)) if isinstance(part, memoryview) else len(part) for part in self.unsent)

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - the standard library's signature
        """Do nothing if the socket blocks already: gunicorn asks for it with every request."""
        if not flag or self.gettimeout() is not None:
            super().setblocking(flag)

    def send(self, data: Any, flags: int = 0) -> int:
        """Send what fits, or nothing."""
        try:
            return super().send(data, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def sendall(self, data: Any, _flags: int = 0) -> None:
        """Collect bytes of an answer. Gunicorn writes its head and its body by this."""
        self.unsent.append(data)

    def flush(self) -> bool:
        """Send what fits of the collected bytes, and return whether that was all. Forgets them on OSError."""
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
    """Gives the parser what has arrived, and never reads the socket."""

    # The parser wanted more than arrived: where the next request begins is unknown.
    is_short = False

    def hold(self, arrived: bytes) -> None:
        """Begin a request with these bytes."""
        self.buf = io.BytesIO(arrived)
        self.is_short = False

    def head(self) -> bytes:
        """Return the head of the request that is held."""
        head, end, _ = self.buf.getvalue().partition(b"\r\n\r\n")
        return bytes(head + end)

    def chunk(self, _size_hint: int | None = None) -> bytes:
        """Return nothing, as if the client had closed."""
        self.is_short = True
        return b""


class Connection(TConn):  # type: ignore[misc]
    """A client's connection. Its socket blocks, for the threads; the loop says with every use that it does not wait."""

    def __init__(self, cfg: Any, client: socket.socket, *addresses: Any) -> None:
        super().__init__(cfg, ClientSocket(client), *addresses)
        # The loop has waited already.
        self.data_ready = True
        self.unreader = ArrivedUnreader(self.sock)
        self.began_at = 0.0
        self.is_long = False
        self.is_polled = False
        self.drained_bytes = 0
        # Of the peer, once it was asked for.
        self.peer_source: Source | None = None
        # As api.http.crowd counts it, while the loop waits for its client; and how it is ended meanwhile.
        self.source: Source = ()
        self.end: Callback = _ignore
        self.closed: Callback = _ignore
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
            self.sock.send(data)

    def shut(self, how: int) -> None:
        """End one direction, or both, for the thread that waits for it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(how)

    def poll(self, poller: BaseSelector, callback: Callback, events: int = EVENT_READ) -> None:
        """Have the loop call back when there is something to receive, or room to send."""
        if not self.is_polled:
            self.is_polled = True
            # Gunicorn's loop passes the socket as well.
            poller.register(self.sock, events, partial(_call, callback, self))

    def unpoll(self, poller: BaseSelector) -> None:
        """Have the loop look away."""
        if self.is_polled:
            self.is_polled = False
            poller.unregister(self.sock)

    def abort(self) -> None:
        """Have the client see an error instead of a short answer, and the kernel keep none of it."""
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

"""The gunicorn worker: a loop that receives requests, threads that answer them, and JSON even for what is not HTTP.

Named in gunicorn.conf.py. Gunicorn's own threaded worker waits in a thread for the rest of a request, and in its loop
for clients to close, so that as many idle connections as there are threads would stop the gateway. Here heads and small
bodies arrive in the loop, which never waits for anybody; a thread gets what is there whole.
"""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from typing import TYPE_CHECKING, Any, Final

from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]
from gunicorn.util import write_nonblock  # type: ignore[import-untyped]
from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from api.arrival import Arrival, Verdict
from api.client_ip import client_ip, is_trusted
from api.errors import error_body
from api.limits import source_name
from core.errors import DomainError, GatewayBusy, GatewayInternalError, RequestMalformed
from core.ids import uuid7

if TYPE_CHECKING:
    from concurrent.futures import Future

    from api.client_ip import Proxies

# To send a request, counted from its first byte (or the connection's); what came in time is answered.
REQUEST_S: Final = 15.0
# To take the answer as well. Above the longest wait for a call, and what routers in front allow.
EXCHANGE_S: Final = 35.0
# Of a body that the application refused unread, gunicorn discards so much; where more comes it closes the connection.
DISCARDED_MAX: Final = 64 * 1024
# After the last answer, for the client to close: what it still sends is thrown away, lest it lose that answer.
LINGER_S: Final = 2.0
LINGER_BYTES_MAX: Final = 64 * 1024
# One thread in so many may wait for the rest of a long body.
LONG_SHARE: Final = 4
CHUNK_BYTES: Final = 64 * 1024
OPEN_MAX: Final = 128
# Deadlines are looked at so often.
LOOK_S: Final = 0.1


class ArrivedUnreader(SocketUnreader):  # type: ignore[misc]
    """Gives the parser what has arrived, and lets it read on only where the loop did not wait for all."""

    is_whole = False

    def hold(self, arrived: bytes, *, is_whole: bool) -> None:
        """Begin a request with these bytes; is_whole: nothing of it is still to come."""
        self.buf = io.BytesIO(arrived)
        self.is_whole = is_whole

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return more from the socket, or nothing as if the client had closed."""
        return b"" if self.is_whole else super().chunk(size_hint)


class Connection(TConn):  # type: ignore[misc]
    """A client's connection, with what has arrived on it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The loop has waited already.
        self.data_ready = True
        self.unreader = ArrivedUnreader(self.sock)
        self.began_at = 0.0
        self.is_long = False
        self.is_polled = False
        self.drained_bytes = 0


class BoundedThreadWorker(ThreadWorker):  # type: ignore[misc]
    """Receives in its loop, and ends the exchanges that take too long; looked at between other events."""

    trusted_proxies: Proxies = ()
    # Requests that one source may have on their way; with another, its oldest ends.
    open_max: int = OPEN_MAX

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.cfg.is_ssl:
            raise RuntimeError("TLS ends before gunicorn, at a router or proxy: this loop reads plain bytes")
        # Each in the order of its deadlines.
        self._arriving: dict[Connection, Arrival] = {}
        self._lingering: dict[Connection, float] = {}
        self._by_source: dict[str, dict[Connection, None]] = {}
        self._long_waiting: deque[Connection] = deque()
        self._long_free = max(1, self.cfg.threads // LONG_SHARE)
        self._started_at: dict[Connection, float] = {}
        self._looked_at = 0.0

    # Life ------------------------------------------------------------------------------------------------------

    def init_process(self) -> None:
        """Start what threads there are, one of them for health alone."""
        self._health = ThreadPoolExecutor(1, thread_name_prefix="health")
        super().init_process()

    def run(self) -> None:
        """Serve until told to end."""
        try:
            super().run()
        finally:
            self._health.shutdown(wait=False)

    def _cap_keepalive(self, deadline: float) -> None:
        """When ending, give those who are sending a request as long as gunicorn gives those who may."""
        super()._cap_keepalive(deadline)
        for arrival in self._arriving.values():
            arrival.began_at = min(arrival.began_at, deadline - REQUEST_S)

    # Receiving, in the loop ------------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection and begin to receive."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK}:
                raise
            return
        self.nr_conns += 1
        self._receive(Connection(self.cfg, client, address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Receive the next request of a connection that was kept."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._receive(conn)

    def _receive(self, conn: Connection, arrived: bytes = b"") -> None:
        """Begin a request; `arrived` came behind the one before."""
        conn.began_at = time.monotonic()
        arrival = self._arriving[conn] = Arrival(conn.began_at, None)
        self._count(conn, arrival, self._peer(conn))
        if arrived:
            self._judge(conn, arrival, arrival.add(arrived))
        else:
            self._on_arriving(conn, conn.sock)

    def _on_arriving(self, conn: Connection, client: socket.socket) -> None:
        arrival = self._arriving.get(conn)
        if arrival is None:
            return
        try:
            chunk = client.recv(CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            self._poll(conn, self._on_arriving)
        except OSError:
            self._drop(conn)
        else:
            if chunk:
                self._judge(conn, arrival, arrival.add(chunk))
            else:
                self._end_of_request(conn, arrival)

    def _judge(self, conn: Connection, arrival: Arrival, verdict: Verdict) -> None:
        match verdict:
            case Verdict.WAIT:
                self._wait(conn, arrival)
            case Verdict.ENDLESS:
                self._refuse(conn, RequestMalformed())
            case Verdict.LONG:
                self._hand_over(conn, arrival, is_whole=False)
                self._long_waiting.append(conn)
                self._begin_long()
            case Verdict.WHOLE | Verdict.HEALTH:
                self._hand_over(conn, arrival, is_whole=True)
                self._submit(self._health if verdict is Verdict.HEALTH else self.tpool, conn)

    def _wait(self, conn: Connection, arrival: Arrival) -> None:
        """Wait for more; for a body, having told the client to send it where it asks."""
        if arrival.take_head():
            if arrival.source is None:
                self._count(conn, arrival, self._forwarded(conn, arrival))
            if arrival.take_expectation():
                with contextlib.suppress(OSError):
                    conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._poll(conn, self._on_arriving)

    def _end_of_request(self, conn: Connection, arrival: Arrival) -> None:
        """Answer who sends no more than a head and part of its body; who sent less asked nothing."""
        if not arrival.head_bytes:
            self._drop(conn)
            return
        self._hand_over(conn, arrival, is_whole=True)
        self._submit(self.tpool, conn)

    def _hand_over(self, conn: Connection, arrival: Arrival, *, is_whole: bool) -> None:
        self._forget(conn)
        conn.is_long = not is_whole
        conn.unreader.hold(bytes(arrival.data), is_whole=is_whole)

    def _submit(self, pool: ThreadPoolExecutor, conn: Connection) -> None:
        done = pool.submit(self.handle, conn)
        done.add_done_callback(lambda future: self.method_queue.defer(self.finish_request, conn, future))

    def _begin_long(self) -> None:
        """Give a thread to long bodies that wait for one, as far as they may have more."""
        while self._long_free and self._long_waiting:
            self._long_free -= 1
            self._submit(self.tpool, self._long_waiting.popleft())

    # Whose they are --------------------------------------------------------------------------------------------

    def _peer(self, conn: Connection) -> str | None:
        """Return whose open requests those of a peer are; a proxy's belong to nobody yet."""
        address = client_ip({"REMOTE_ADDR": conn.client[0]}, ()) if isinstance(conn.client, tuple) else None
        return None if address is None or is_trusted(address, self.trusted_proxies) else source_name(address)

    def _forwarded(self, conn: Connection, arrival: Arrival) -> str | None:
        if not isinstance(conn.client, tuple):
            return None
        env = {"REMOTE_ADDR": conn.client[0], "HTTP_X_FORWARDED_FOR": arrival.forwarded_for()}
        address = client_ip(env, self.trusted_proxies)
        return None if address is None or is_trusted(address, self.trusted_proxies) else source_name(address)

    def _count(self, conn: Connection, arrival: Arrival, source: str | None) -> None:
        """Count an open request for its source, and end the oldest where there are too many."""
        if source is None:
            return
        arrival.source = source
        held = self._by_source.setdefault(source, {})
        held[conn] = None
        if len(held) > self.open_max:
            self._drop(next(iter(held)))

    def _forget(self, conn: Connection) -> None:
        """Take a connection out of the loop."""
        self._unpoll(conn)
        self._lingering.pop(conn, None)
        arrival = self._arriving.pop(conn, None)
        if arrival is not None and arrival.source is not None:
            held = self._by_source[arrival.source]
            held.pop(conn, None)
            if not held:
                del self._by_source[arrival.source]

    # Answering, in a thread ------------------------------------------------------------------------------------

    def handle(self, conn: Connection) -> Any:
        """Serve one request of a connection, in a thread of the pool."""
        self._started_at[conn] = time.monotonic()
        try:
            conn.init()
            conn.parser.unreader = conn.unreader
            return super().handle(conn)
        finally:
            self._started_at.pop(conn, None)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Answer one request. After a long body the connection may have to end, and the answer has to say so."""
        if any(name == "CONTENT-LENGTH" and int(value) >= DISCARDED_MAX for name, value in req.headers):
            req.force_close()
        return super().handle_request(req, conn)

    def handle_error(self, _req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer what never became a request, in the envelope of all errors."""
        request_id = str(uuid7())
        if isinstance(exc, ParseException):
            self.log.info("malformed request %s from %s: %s", request_id, addr, exc)
            error: DomainError = RequestMalformed()
        else:
            self.log.error("request %s failed outside the application", request_id, exc_info=exc)
            error = GatewayInternalError()
        with contextlib.suppress(OSError):
            write_nonblock(client, _response(error, request_id))

    # Afterwards, in the loop -----------------------------------------------------------------------------------

    def finish_request(self, conn: Connection, fs: Future[Any]) -> None:
        """Receive the next request, or let the client close."""
        if conn.is_long:
            conn.is_long = False
            self._long_free += 1
            self._begin_long()
        if fs.cancelled() or fs.exception() is not None or not fs.result():
            self._linger(conn)
            return
        conn.sock.setblocking(False)
        behind = conn.unreader.take_buffered()
        if behind:
            self._receive(conn, behind)
            return
        conn.set_timeout()
        if not self.alive:
            conn.timeout = min(conn.timeout, time.monotonic() + LINGER_S)
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))

    def _refuse(self, conn: Connection, error: DomainError) -> None:
        """Answer from the loop what gets no thread."""
        self._forget(conn)
        with contextlib.suppress(OSError):
            conn.sock.send(_response(error, str(uuid7())))
        self._linger(conn)

    def _linger(self, conn: Connection) -> None:
        """Say that nothing more will be sent, and wait a little for the client to close. Gunicorn waits in its loop."""
        self._forget(conn)
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        self._lingering[conn] = time.monotonic() + LINGER_S
        self._on_lingering(conn, conn.sock)

    def _on_lingering(self, conn: Connection, client: socket.socket) -> None:
        if conn not in self._lingering:
            return
        try:
            chunk = client.recv(CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            self._poll(conn, self._on_lingering)
            return
        except OSError:
            chunk = b""
        conn.drained_bytes += len(chunk)
        if not chunk or conn.drained_bytes > LINGER_BYTES_MAX:
            self._drop(conn)
        else:
            self._poll(conn, self._on_lingering)

    def _drop(self, conn: Connection) -> None:
        """Close a connection that the loop has."""
        self._forget(conn)
        self.nr_conns -= 1
        conn.close()

    def _poll(self, conn: Connection, callback: Any) -> None:
        if not conn.is_polled:
            conn.is_polled = True
            self.poller.register(conn.sock, EVENT_READ, partial(callback, conn))

    def _unpoll(self, conn: Connection) -> None:
        if conn.is_polled:
            conn.is_polled = False
            self.poller.unregister(conn.sock)

    def murder_pending(self) -> None:
        """Cut what would be waited for; called by gunicorn's loop after every round."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        while self._arriving:
            conn, arrival = next(iter(self._arriving.items()))
            if now - arrival.began_at <= REQUEST_S:
                break
            self._end_of_request(conn, arrival)
        while self._lingering and next(iter(self._lingering.values())) < now:
            self._drop(next(iter(self._lingering)))
        while self._long_waiting and now - self._long_waiting[0].began_at > REQUEST_S:
            self._refuse(self._long_waiting.popleft(), GatewayBusy())
        for conn, started_at in list(self._started_at.items()):
            if now - started_at > EXCHANGE_S:
                _shut(conn, socket.SHUT_RDWR)
            elif conn.is_long and now - conn.began_at > REQUEST_S:
                # Reading ends, as if the client had closed; a thread that is busy answering does not notice.
                _shut(conn, socket.SHUT_RD)


def serving(*, trusted_proxies: Proxies, open_max: int) -> type[BoundedThreadWorker]:
    """Return the worker class of a gateway with these settings."""
    return type("Worker", (BoundedThreadWorker,), {"trusted_proxies": trusted_proxies, "open_max": open_max})


def _shut(conn: Connection, how: int) -> None:
    with contextlib.suppress(OSError):
        conn.sock.shutdown(how)


def _response(error: DomainError, request_id: str) -> bytes:
    body = error_body(error)
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Request-Id: {request_id}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii") + body

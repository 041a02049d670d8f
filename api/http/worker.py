"""The gunicorn worker: a loop receives requests, threads answer them, and bytes that are not HTTP get JSON too.

Named in gunicorn.conf.py. In gunicorn's own threaded worker, a thread waits for the rest of a request and the loop
waits for clients to close, so that a few idle connections, one for each thread, would stop the gateway. Here the loop
receives requests (api.http.receiving) and waits for no client, when a connection closes neither (api.http.lingering). A
thread gets complete requests, and keeps the connection for a moment (api.http.staying). If a client does not take its
answer at once, the loop sends the rest (api.http.sending). A source with too many connections loses its oldest
(api.http.crowd).
"""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from selectors import EVENT_READ
from typing import Any, Final

import structlog
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from api.http.arrival import Verdict, forwarded_for
from api.http.client_ip import Proxies
from api.http.connection import Connection, refusal, response
from api.http.crowd import OPEN_MAX, Crowd
from api.http.lingering import LINGER_S, Lingering
from api.http.receiving import Doors, Receiving
from api.http.sending import Sending
from api.http.staying import STAYING_SHARE, Staying
from api.http.turns import Turns
from api.limits.sources import Source
from core.errors import DomainError, GatewayInternalError, RequestMalformed
from core.ids import uuid7

log = structlog.get_logger("sluice.api")

# The time to send a request, from its first byte (or the connection's); a request that came in time is answered.
REQUEST_S: Final = 15.0
# The time for a thread to answer a request, and again for the client to take the part that did not fit into its
# socket. Longer than the longest wait for a call, and than what routers in front allow.
EXCHANGE_S: Final = 35.0
# Of a body that the application refused unread, at most this much is discarded at once.
DISCARDED_MAX: Final = 64 * 1024
# Health checks that may queue for their one thread. Further ones wait where they are counted by source, so that a full
# process ends a connection of a source that floods it, not the only connection of another.
HEALTH_AHEAD: Final = 4
# The loop looks for passed deadlines at most this often.
LOOK_S: Final = 0.1
# A client of a unix socket is on this machine; one that may connect is believed if loopback is a trusted proxy.
LOOPBACK: Final = ("127.0.0.1", 0)
# Errors of accept() if the process or the machine can have no more sockets.
_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Files that a worker needs in addition to its connections: for PostgreSQL, for Redis, and its own.
FILES: Final = 1024
# Gunicorn would touch its heartbeat file in every round of the loop, twice a request; its master waits a minute.
NOTIFY_S: Final = 1.0


class BoundedThreadWorker(ThreadWorker):  # type: ignore[misc]
    """Receives requests in its loop, and ends exchanges that take too long; checks deadlines between events."""

    trusted_proxies: Proxies = ()
    # Incomplete requests that one source may have; one more ends its oldest.
    open_max: int = OPEN_MAX

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.cfg.is_ssl:
            raise RuntimeError("TLS ends before gunicorn, at a router or proxy: this loop reads plain bytes")
        self._turns, self._health_turns = Turns(), Turns()
        self._started_at: dict[Connection, float] = {}
        self._looked_at = self._notified_at = 0.0

    # Life ------------------------------------------------------------------------------------------------------

    def init_process(self) -> None:
        """Start the threads, one of them for health alone."""
        _allow_files(self.cfg.worker_connections + FILES)
        # A full process ends idle connections of the largest source; gunicorn's rule would keep none of any source.
        self.max_keepalived = self.cfg.worker_connections
        self._health = ThreadPoolExecutor(1, thread_name_prefix="health")
        # Gunicorn computes a setting by a failed look-up and three calls, and a request reads thirty.
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        super().init_process()

    def run(self) -> None:
        """Serve until gunicorn ends the worker."""
        doors = Doors(arrived=self._answer, refused=self._refuse, dropped=self._drop)
        self._crowd = Crowd(trusted_proxies=self.trusted_proxies, open_max=self.open_max)
        self._receiving = Receiving(self.poller, doors, self._crowd)
        self._sending = Sending(self.poller, self._crowd, done=self._finish, dropped=self._drop)
        self._lingering = Lingering(self.poller, self._crowd, drop=self._drop)
        self._staying = Staying(threads_max=self.cfg.threads // STAYING_SHARE, is_wanted=self._is_thread_wanted)
        try:
            super().run()
        finally:
            self._health.shutdown(wait=False)

    def notify(self) -> None:
        """Report to gunicorn's master that the loop runs; called in every round."""
        now = time.monotonic()
        if now - self._notified_at >= NOTIFY_S:
            self._notified_at = now
            super().notify()

    def _cap_keepalive(self, deadline: float) -> None:
        """At shutdown, give clients that are sending a request as long as gunicorn gives those that may begin one."""
        super()._cap_keepalive(deadline)
        self._receiving.hurry(deadline - REQUEST_S)

    # Before a thread, in the loop ------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection and begin to receive."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                # Gunicorn's worker would end here, with all of its requests.
                self._crowd.end_oldest()
            elif error.errno not in {errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK}:
                raise
            return
        self.nr_conns += 1
        peer = address if isinstance(address, tuple) else LOOPBACK
        self._receiving.begin(Connection(self.cfg, client, peer, listener.getsockname()))
        self._make_room()

    def _make_room(self) -> None:
        """End a waiting connection of the source that has the most, if gunicorn would accept no further one."""
        if self.nr_conns >= self.worker_connections:
            self._crowd.end_oldest()

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Receive the next request of a connection that was kept."""
        if not conn.source:
            # Another event of this round ended it.
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._crowd.discard(conn)
        self._receiving.begin(conn)

    def _answer(self, conn: Connection, verdict: Verdict) -> None:
        """Queue a request for a thread of its pool."""
        if verdict is Verdict.HEALTH:
            self._queue(conn, self._health, self._health_turns, ahead=HEALTH_AHEAD, stays=False)
        else:
            self._queue(conn, self.tpool, self._turns, ahead=self.cfg.threads, stays=True)

    def _queue(self, conn: Connection, pool: ThreadPoolExecutor, turns: Turns, *, ahead: int, stays: bool) -> None:
        """Queue a request in a pool with fewer than `ahead` waiting; else let it wait for its source's turn."""
        if turns or _queued(pool) >= ahead:
            source = self._head_source(conn)
            turns.add(conn, source)
            self._crowd.add(conn, source, partial(self._end_turn, turns))
        else:
            pool.submit(self._serve, conn, stays=stays)

    def _take_turns(self) -> None:
        """Queue as many requests in each pool as may be ahead, so that no thread waits for the loop."""
        self._take(self.tpool, self._turns, ahead=self.cfg.threads, stays=True)
        self._take(self._health, self._health_turns, ahead=HEALTH_AHEAD, stays=False)

    def _take(self, pool: ThreadPoolExecutor, turns: Turns, *, ahead: int, stays: bool) -> None:
        while turns and _queued(pool) < ahead:
            conn = turns.take()
            self._crowd.discard(conn)
            pool.submit(self._serve, conn, stays=stays)

    def _end_turn(self, turns: Turns, conn: Connection) -> None:
        turns.remove(conn, conn.source)
        self._end_waiting(conn)

    def _end_waiting(self, conn: Connection) -> None:
        self._receiving.answered(conn)
        self._drop(conn)

    def _head_source(self, conn: Connection) -> Source:
        """Return the source of a request whose head has come."""
        return self._crowd.forwarded_source(conn, forwarded_for(conn.unreader.head()))

    def _is_thread_wanted(self) -> bool:
        """Return True if requests wait for a thread, or the process is ending."""
        return not self.alive or _queued(self.tpool) > 0

    # Answering, in a thread ------------------------------------------------------------------------------------

    def _serve(self, conn: Connection, *, stays: bool = False) -> None:
        is_kept = False
        try:
            # A client that has closed takes no answer.
            with contextlib.suppress(OSError):
                while self._exchange(conn):
                    if not (conn.sock.flush() and stays and self._staying.holds_next(conn)):
                        is_kept = True
                        break
                else:
                    conn.sock.flush()
        finally:
            self.method_queue.defer(self.finish_request, conn, is_kept)

    def _exchange(self, conn: Connection) -> bool:
        self._started_at[conn] = time.monotonic()
        try:
            return bool(self.handle(conn))
        finally:
            self._started_at.pop(conn, None)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Answer one request. After a long body the connection ends, and the answer says so.

        The body is refused unread. A proxy may see its end elsewhere, and read another client's request behind it.
        """
        if conn.is_long:
            req.force_close()
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> bool:
        """Return True if the connection can be used again once the rest of the body is discarded. Never waits."""
        if not keepalive:
            return False
        body = conn.parser.mesg.body
        while not body.failed and body.read(DISCARDED_MAX):
            pass
        return not body.failed and not conn.unreader.is_short

    def handle_error(self, _req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer bytes that never became a request, in the envelope of all errors."""
        request_id = str(uuid7())
        if isinstance(exc, ParseException):
            log.info("request.malformed", request_id=request_id, peer=str(addr), problem=str(exc))
            error: DomainError = RequestMalformed()
        else:
            log.error("request.failed_outside", request_id=request_id, exc_info=exc)
            error = GatewayInternalError()
        client.sendall(response(error, request_id))

    # Afterwards, in the loop -----------------------------------------------------------------------------------

    def finish_request(self, conn: Connection, is_kept: bool) -> None:  # noqa: FBT001 - called by gunicorn's queue
        """Receive the next request, or let the client close."""
        self._receiving.answered(conn)
        self._take_turns()
        if conn.sock.unsent:
            self._sending.begin(conn, self._answered_source(conn), is_kept=is_kept, limit_s=EXCHANGE_S)
        else:
            self._finish(conn, is_kept)

    def _answered_source(self, conn: Connection) -> Source:
        """Return the source of the request that was answered last."""
        headers = getattr(conn.parser and conn.parser.mesg, "headers", ())
        forwarded_for = ",".join(value for name, value in headers if name == "X-FORWARDED-FOR")
        return self._crowd.forwarded_source(conn, forwarded_for)

    def _finish(self, conn: Connection, is_kept: bool) -> None:  # noqa: FBT001 - as it is deferred
        if not is_kept:
            self._lingering.begin(conn)
            return
        behind = conn.unreader.take_buffered()
        if behind:
            self._receiving.begin(conn, behind)
            return
        conn.set_timeout()
        if not self.alive:
            conn.timeout = min(conn.timeout, time.monotonic() + LINGER_S)
        self.keepalived_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))
        self._crowd.add(conn, self._crowd.peer_source(conn), self._end_kept)

    def _end_kept(self, conn: Connection) -> None:
        self.poller.unregister(conn.sock)
        self.keepalived_conns.remove(conn)
        self._drop(conn)

    def _refuse(self, conn: Connection, error: DomainError) -> None:
        """Answer a request from the loop, without a thread."""
        conn.send(refusal(error))
        self._lingering.begin(conn)

    def _drop(self, conn: Connection) -> None:
        """Close a connection that no part of the loop uses."""
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """End the exchanges whose time is over; called by gunicorn's loop after every round."""
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        self._receiving.end_begun_before(now - REQUEST_S)
        self._sending.end_overdue(now)
        self._lingering.end_overdue(now)
        self._make_room()
        for conn, started_at in list(self._started_at.items()):
            if now - started_at > EXCHANGE_S:
                conn.shut(socket.SHUT_RDWR)


def _queued(pool: ThreadPoolExecutor) -> int:
    return pool._work_queue.qsize()  # noqa: SLF001 - no public attribute has it


def _allow_files(count: int) -> None:
    """Raise the process's limit of open files as far as allowed: many systems begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def serving(*, trusted_proxies: Proxies, open_max: int) -> type[BoundedThreadWorker]:
    """Return the worker class of a gateway with these settings."""
    return type("Worker", (BoundedThreadWorker,), {"trusted_proxies": trusted_proxies, "open_max": open_max})

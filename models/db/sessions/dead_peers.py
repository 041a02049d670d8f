"""Ends waits for a PostgreSQL that is silent, not dead: frozen, or behind a network that drops packets.

Used by models.db.base.
Neither its timeouts nor TCP's end such a wait: statement_timeout is frozen with the server, while its kernel goes on
acknowledging what we send. So each connection records when its statement began, and one thread of the process shuts
down connections whose answer is long overdue; the waiting thread then gets a lost connection. It also closes the idle
connections that a burst left behind, Redis's among them, since it wakes every few seconds anyway.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, Final

import psycopg2
import psycopg2.extensions

from models.db.sessions import unused

# Added to the server's statement timeout. COMMIT, which no timeout of the server limits, has only this.
GRACE_S: Final = 4.0
TICK_S: Final = 0.5
# If connecting takes this long, the server did not refuse but did not answer.
SLOW_CONNECT_S: Final = 1.5

# What both sides send and expect while nothing is said, so that a host that vanished is noticed within seconds; with it
# end the sessions, and so the locks, of one that vanished on the other side.
CLIENT_OPTIONS: Final[dict[str, Any]] = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
SERVER_OPTIONS: Final = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "client_connection_check_interval": 5_000,
}


class WatchedConnection(psycopg2.extensions.connection):
    """A connection that notes since when a statement of it is under way."""

    # None: nothing is, or for as long as it likes.
    asked_at: float | None = None
    patience_s: float | None = None

    def watch(self, statement_timeout_ms: int) -> None:
        """Watch this connection, to cut it if a statement takes longer than the server allows; 0 means no limit."""
        self.patience_s = patience_s(statement_timeout_ms)
        descriptor = self.fileno()
        # Distinguishes this socket from a later one with the same number.
        self.identity = (descriptor, os.fstat(descriptor).st_ino)
        _watch.add(self)

    def is_silent(self, now: float) -> bool:
        """Return whether an answer is overdue."""
        asked_at = self.asked_at
        return asked_at is not None and self.patience_s is not None and now - asked_at > self.patience_s

    def cut(self) -> bool:
        """Shut the socket down under the thread that waits for it; False if it is gone by itself."""
        descriptor, inode = self.identity
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as own:
            if os.fstat(own.fileno()).st_ino == inode:
                own.shutdown(socket.SHUT_RDWR)
                return True
        return False


class WatchedCursor(psycopg2.extensions.cursor):
    """The cursor of a watched connection. It adds two assignments to a statement."""

    connection: WatchedConnection

    def execute(self, query: Any, vars: Any = None) -> None:  # noqa: A002 - psycopg2's name
        """Run a statement; see psycopg2."""
        connection = self.connection
        connection.asked_at = time.monotonic()
        try:
            super().execute(query, vars)
        finally:
            connection.asked_at = None


def patience_s(statement_timeout_ms: int) -> float | None:
    """Return how long a statement with this timeout is waited for; None is for ever."""
    return statement_timeout_ms / 1000 + GRACE_S if statement_timeout_ms else None


class _Watch:
    """The connections of this process, and the thread that looks after them."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._connections: weakref.WeakSet[WatchedConnection] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    forget = _begin

    def add(self, connection: WatchedConnection) -> None:
        with self._lock:
            self._connections.add(connection)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="silence", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        pause_s = TICK_S
        while True:
            time.sleep(pause_s)
            try:
                with self._lock:
                    connections = list(self._connections)
            except RuntimeError:
                # Another thread has dropped a connection while the set was read; it is read again.
                pause_s = TICK_S
                continue
            now = time.monotonic()
            # A statement that begins after this look is overdue no sooner than GRACE_S later.
            pause_s = TICK_S if any(connection.asked_at is not None for connection in connections) else GRACE_S
            for connection in connections:
                if connection.is_silent(now) and connection.cut():
                    answering.note_silence()
            del connections
            with contextlib.suppress(OSError, psycopg2.Error):
                unused.close_idle()


class Answering:
    """The process's knowledge whether PostgreSQL answers; shared by its threads.

    While it does not, one thread at a time tries again, and the others are refused at once.
    """

    def __init__(self) -> None:
        self._is_silent = False
        self._asking = threading.Lock()

    def note_silence(self) -> None:
        """Record that a statement was not answered."""
        self._is_silent = True

    @contextlib.contextmanager
    def connecting(self) -> Iterator[None]:
        """Connect inside. Raises psycopg2.OperationalError if another thread waits for an answer already."""
        is_asking = self._is_silent
        if is_asking and not self._asking.acquire(blocking=False):
            raise psycopg2.OperationalError("PostgreSQL does not answer")
        began_at = time.monotonic()
        try:
            yield
            self._is_silent = False
        except psycopg2.OperationalError:
            # One that refuses at once, or lacks a place, is not silent.
            self._is_silent = time.monotonic() - began_at > SLOW_CONNECT_S
            raise
        finally:
            if is_asking:
                self._asking.release()


_watch: Final = _Watch()
answering: Final = Answering()
os.register_at_fork(after_in_child=_watch.forget)

"""Keeps sessions of the tests' database for the next test: a new session would read the whole catalogue again.

A session of models.db.base is kept when it is closed, if no transaction is open in it; all its settings and locks are
reset.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import psycopg2

from models.db import base
from models.db.sessions.dead_peers import WatchedConnection

KEPT_MAX: Final = 8


class KeptSessions:
    """The idle sessions of one database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._open: Any = base.db._connect
        self._idle: list[WatchedConnection] = []
        # Closed by the running test, which gets new ones where it connects again.
        self._resting: list[WatchedConnection] = []
        self._lock = threading.Lock()
        base.db._connect, base.db._close = self._take, self._give

    def pids(self) -> list[int]:
        """Offer to the next test what this one closed, and return the processes that serve what is kept."""
        while self._resting:
            self._idle.append(self._resting.pop())
        return [session.get_backend_pid() for session in self._idle]

    def close(self) -> None:
        """End them all."""
        self.pids()
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> WatchedConnection:
        kind = (base.db.database, dict(base.db.connect_params))
        with self._lock:
            session = next((session for session in self._idle if session.kind == kind), None)
            if session is not None:
                self._idle.remove(session)
        # One that the server ended has that to say.
        if session is None or base._is_readable(session.fileno()):
            session = self._open()
            session.kind = kind
        return session

    def _give(self, session: WatchedConnection) -> None:
        is_room = len(self._idle) + len(self._resting) < KEPT_MAX
        # One that is older than this has no kind.
        if getattr(session, "kind", [None])[0] == self._url and is_room and _is_reset(session):
            self._resting.append(session)
        else:
            session.close()


def _is_reset(session: WatchedConnection) -> bool:
    try:
        # Refused inside a transaction.
        session.cursor().execute("DISCARD ALL")
    except psycopg2.Error:
        return False
    return True

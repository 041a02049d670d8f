"""Recognises a connection pooler in transaction mode between a process and PostgreSQL. Used by models.db.base.

Such a pooler (PgBouncer, and others like it) runs each transaction of a session in another backend: timeouts and
advisory locks of the session are lost without an error. A direct connection knows its backend's number from its start;
a pooler makes up another. In session mode a session keeps its backend for itself, in transaction mode two share one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Final

import psycopg2
import structlog
from psycopg2.extensions import connection

from core.logs import log
from core.settings.settings import Settings
from models.db.sessions.dead_peers import WatchedConnection, WatchedCursor

CONNECT_TIMEOUT_S: Final = 3
# A pooler whose backends are all in use keeps a session waiting: its mode stays unknown then.
ANSWER_TIMEOUT_MS: Final = 1_000
# Traffic of others may take a shared backend between two questions.
ROUNDS: Final = 8
# PgBouncer refuses the settings that a session begins with, unless it is configured to ignore them.
REFUSES_OPTIONS: Final = "unsupported startup parameter"
REASON: Final = (
    "DATABASE_URL leads to PgBouncer, or a pooler like it, in transaction mode, which loses timeouts and session locks:"
    " set its pool_mode to session, or name PostgreSQL itself"
)

events = structlog.get_logger()


class PoolerError(psycopg2.OperationalError):
    """The database is behind a pooler in transaction mode."""


def end_behind(settings: Settings, *, process: str) -> None:
    """End a process at its start, with one logged line, if its database is behind a pooler in transaction mode."""
    try:
        refuse(settings.database_url)
    except PoolerError as refusal:
        log.configure(settings, process=process)
        events.critical("database.pooler_refused", reason=str(refusal))
        sys.exit(1)


def refuse(url: str) -> None:
    """Raise PoolerError if a URL leads to a pooler in transaction mode. A server that is away is not refused."""

    def connect() -> WatchedConnection:
        session: WatchedConnection = psycopg2.connect(
            url,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="sluice-start",
            connection_factory=WatchedConnection,
            cursor_factory=WatchedCursor,
        )
        return session

    try:
        with contextlib.closing(connect()) as session:
            session.watch(ANSWER_TIMEOUT_MS)
            is_pooled = is_between(session)
        if is_pooled:
            check(connect)
    except PoolerError:
        raise
    except psycopg2.OperationalError:
        return


def is_between(session: connection) -> bool:
    """Return True if a new session leads through a pooler, in either mode."""
    number = _backend(session)
    session.rollback()
    return number != session.info.backend_pid


def check(connect: Callable[[], WatchedConnection]) -> bool:
    """Return True if the pooler is in session mode. Raises PoolerError in transaction mode."""
    with contextlib.closing(connect()) as first, contextlib.closing(connect()) as second:
        first.watch(ANSWER_TIMEOUT_MS)
        second.watch(ANSWER_TIMEOUT_MS)
        first.autocommit = True
        if any(_is_shared(first, second) for _ in range(ROUNDS)):
            raise PoolerError(REASON)
    return True


def begin(session: connection, settings: Mapping[str, object]) -> None:
    """Set a session's settings, which a pooler has not passed on."""
    texts = [str(text) for pair in settings.items() for text in pair]
    with session.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(['set_config(%s, %s, false)'] * len(settings))}", texts)
    session.commit()


def _is_shared(first: connection, second: connection) -> bool:
    """Return True if two sessions share a backend, or one changes its own. The second holds a transaction open."""
    own = _backend(first)
    second.autocommit = False
    try:
        # The second first: where there is one backend for both, the other question would wait for it.
        return _backend(second) == own or _backend(first) != own
    finally:
        second.rollback()


def _backend(session: connection) -> int:
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((number,),) = cursor.fetchall()
    return int(number)

"""Opens the one way to PostgreSQL: a connection per thread, one transaction per step. Used by models and actors.

A thread keeps its connection from the first statement until release(), at the end of a message or a request.
"""

from __future__ import annotations

import contextlib
import re
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, cast

import peewee
import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from core.logs import outages
from models.db import after_commit
from models.db.sessions import dead_peers, pooler
from models.db.sessions.unused import Unused

P = ParamSpec("P")
T = TypeVar("T")
Params = Sequence[object] | Mapping[str, object]

STATEMENT_TIMEOUT_MS: Final = 10_000
LOCK_TIMEOUT_MS: Final = 2_000
CONNECT_TIMEOUT_S: Final = 3
STEP_ATTEMPTS: Final = 4

DEADLOCK: Final = "40P01"
SERIALIZATION_FAILURE: Final = "40001"
LOCK_NOT_AVAILABLE: Final = "55P03"
QUERY_CANCELED: Final = "57014"
INSUFFICIENT_PRIVILEGE: Final = "42501"

_DRIVER_ERRORS: Final = (
    psycopg2.OperationalError,
    psycopg2.InterfaceError,
    peewee.OperationalError,
    peewee.InterfaceError,
)


# As when it is read-only.
_REFUSED: Final = (psycopg2.InternalError, peewee.InternalError)
# The store's name in the log.
POSTGRESQL: Final = "PostgreSQL"


class _Database(peewee.PostgresqlDatabase):
    """A connection per thread. Opening one does not block other threads, and every wait has a limit."""

    statement_timeout_ms = STATEMENT_TIMEOUT_MS
    # The settings that each session begins with; a pooler does not pass them on, and they are set afterwards.
    session: Mapping[str, object] = MappingProxyType({})
    _is_route_known = _is_pooled = False
    # Of the calling thread.
    _state: Any
    _connect: Callable[[], dead_peers.WatchedConnection]

    def connect(self, reuse_if_open: bool = False) -> bool:  # noqa: FBT001, FBT002 - peewee's
        """Open this thread's connection. Peewee itself opens one at a time, under a lock."""
        if self.deferred:
            raise peewee.InterfaceError("no database was named")
        if not self._state.closed:
            if reuse_if_open:
                return False
            raise peewee.OperationalError("the connection is open already")
        self._state.reset()
        connection = _unused.take()
        if connection is None:
            with dead_peers.answering.connecting():
                connection = self._open()
            connection.watch(self.statement_timeout_ms)
            outages.note_back(POSTGRESQL)
        self._state.set_connection(connection)
        return True

    def expect(self, session: Mapping[str, object]) -> None:
        """Take the settings of sessions to a server whose route is not known yet."""
        self.session, self._is_route_known, self._is_pooled = session, False, False

    def _open(self) -> dead_peers.WatchedConnection:
        """Open a connection; the first one finds out if a pooler is in between. Raises pooler.PoolerError."""
        connection = self._plain()
        try:
            if not self._is_route_known:
                self._is_pooled = pooler.is_between(connection) and pooler.check(self._plain)
                self._is_route_known = True
            if self._is_pooled:
                pooler.begin(connection, self.session)
        except BaseException:
            connection.close()
            raise
        return connection

    def _plain(self) -> dead_peers.WatchedConnection:
        """Open a connection, without the session's settings where a pooler refuses them."""
        try:
            return self._connect()
        except psycopg2.OperationalError as error:
            if pooler.REFUSES_OPTIONS not in str(error):
                raise
            self.connect_params.pop("options", None)
            return self._connect()

    def release(self) -> None:
        """Give this thread's connection to the next thread that needs one, unless a step is under way in it."""
        state = self._state
        if state.closed or state.transactions:
            return
        connection, is_usable = state.conn, _is_at_rest(state.conn)
        if is_usable:
            state.reset()
            _unused.give_back(connection)
        else:
            self.close()

    def close_unused(self) -> None:
        """Close the connections that no thread uses."""
        _unused.close_all()


def _is_at_rest(connection: dead_peers.WatchedConnection) -> bool:
    return not connection.closed and connection.get_transaction_status() == TRANSACTION_STATUS_IDLE


def _is_readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


# An idle connection receives nothing: if it is readable, the server has ended it, or sent a harmless notice.
_unused: Final = Unused[dead_peers.WatchedConnection](
    is_open=lambda connection, _used_at: not (connection.closed or _is_readable(connection.fileno())),
    close=dead_peers.WatchedConnection.close,
)
_own = _Database(None, autoconnect=True)
db: peewee.PostgresqlDatabase = _own


def _number(text: str | bytes | None, _cursor: object) -> int | Decimal | None:
    """Convert a numeric: whole numbers are units and become int; only rates have a fraction."""
    if text is None:
        return None
    written = text.decode() if isinstance(text, bytes) else text
    return Decimal(written) if "." in written else int(written)


def _refuse_float(value: float) -> NoReturn:
    raise TypeError(f"a float ({value!r}) must not reach the database: money is integer units")


psycopg2.extensions.register_type(psycopg2.extensions.new_type((1700,), "UNITS", _number))
psycopg2.extensions.register_adapter(float, _refuse_float)
psycopg2.extras.register_uuid()


class StoreUnavailableError(outages.StoreAwayError):
    """PostgreSQL cannot be reached. Nothing of the step took effect, unless it was cut at COMMIT."""


class StepOverdueError(Exception):
    """The transaction's time is over; it is rolled back and has no effect."""


class _Step(threading.local):
    """The end of the thread's transaction, by the monotonic clock."""

    ends_at: float | None = None


_step: Final = _Step()


def end_step_at(ends_at: float) -> None:
    """Set the end of the open transaction, by time.monotonic(); the next statement after it raises StepOverdueError."""
    _step.ends_at = ends_at


def connect(url: str, *, statement_timeout_ms: int = STATEMENT_TIMEOUT_MS, application_name: str = "sluice") -> None:
    """Point this process at a database. Connections open lazily."""
    close()
    _own.statement_timeout_ms = statement_timeout_ms
    session = {
        "statement_timeout": statement_timeout_ms,
        "lock_timeout": LOCK_TIMEOUT_MS,
        "TimeZone": "UTC",
        **dead_peers.SERVER_OPTIONS,
    }
    _own.expect(session)
    db.init(
        # libpq reads the whole address, sslmode and all; peewee hands it over only under this name of the scheme.
        re.sub(r"^postgres://", "postgresql://", url),
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name=application_name,
        options=" ".join(f"-c {name}={value}" for name, value in session.items()),
        connection_factory=dead_peers.WatchedConnection,
        cursor_factory=dead_peers.WatchedCursor,
        **dead_peers.CLIENT_OPTIONS,
    )


def close() -> None:
    """Close this thread's connection and those that no thread uses."""
    if not db.is_closed():
        db.close()
    _own.close_unused()


def release() -> None:
    """Give this thread's connection to the next thread that needs one; called when a message or a request ends.

    Does nothing inside a transaction. The thread must hold no lock of the session.
    """
    _own.release()


def _drop_ended() -> None:
    """Drop a connection that the server ended, so that the next use opens another. Not inside a step, which is lost.

    An idle connection receives nothing: if it is readable, the server has ended it, or sent a harmless notice.
    """
    if db.is_closed() or db.transaction_depth() != 0:
        return
    connection = db.connection()
    if not connection.closed and _is_readable(connection.fileno()):
        with contextlib.suppress(psycopg2.Error):
            connection.cursor().execute("SELECT 1")
    if connection.closed:
        db.close()


def run(sql: str, params: Params = ()) -> Any:
    """Run one statement on this thread's connection and return its cursor; outside a transaction it is a step itself.

    A connection that ended while idle is replaced first. No statement is ever repeated: if the connection broke while
    it ran, it may have taken effect. Raises StepOverdueError past the transaction's end.
    """
    if _step.ends_at is not None and time.monotonic() >= _step.ends_at:
        raise StepOverdueError
    _drop_ended()
    try:
        cursor = db.cursor()
        cursor.execute(sql, params or None)
    except (*_DRIVER_ERRORS, *_REFUSED) as error:
        _drop_ended()
        if _note(error):
            raise StoreUnavailableError(str(error)) from error
        raise
    outages.note_back(POSTGRESQL)
    return cursor


def _note(error: Exception) -> bool:
    """Report an outage or a refusal, once a minute; return True if the connection is lost."""
    is_lost = isinstance(error, _DRIVER_ERRORS) and _is_connection_loss(error)
    if is_lost:
        outages.note_away(POSTGRESQL, str(error))
    elif pgcode(error) in outages.REFUSALS:
        outages.note_refusal(POSTGRESQL, str(error))
    return is_lost


def _is_connection_loss(error: Exception) -> bool:
    code = pgcode(error)
    return code is None or code.startswith(("08", "57P"))


def one(sql: str, params: Params = ()) -> tuple[Any, ...] | None:
    """Return the first row, or None."""
    return cast("tuple[Any, ...] | None", run(sql, params).fetchone())


def rows(sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a bounded query."""
    return cast("list[tuple[Any, ...]]", run(sql, params).fetchall())


def value(sql: str, params: Params = ()) -> Any:
    """Return the first column of the first row, or None if there is none."""
    row = one(sql, params)
    return row[0] if row else None


def column(sql: str, params: Params = ()) -> list[Any]:
    """Return the first column of all rows."""
    return [row[0] for row in rows(sql, params)]


def is_true(sql: str, params: Params = ()) -> bool:
    """Return True if the first column of the first row is true, as for SELECT 1; False if there is no row."""
    return bool(value(sql, params))


def rows_as(kind: Callable[..., T], sql: str, params: Params = ()) -> list[T]:
    """Return all rows as objects of `kind`, built by the names of the columns in any order.

    Raises TypeError for an unknown column, and for a missing one without a default.
    """
    cursor = run(sql, params)
    names = tuple(column.name for column in cursor.description)
    if names == getattr(kind, "_fields", None):
        # A NamedTuple with the columns in its own order takes a fifth of the time, which matters at thousands a second.
        return list(map(cast("Any", kind)._make, cursor))
    return [kind(**dict(zip(names, row, strict=True))) for row in cursor]


def one_as(kind: Callable[..., T], sql: str, params: Params = ()) -> T | None:
    """Return the first row by the names of its columns, as rows_as() does, or None."""
    return next(iter(rows_as(kind, sql, params)), None)


def execute(sql: str, params: Params = ()) -> int:
    """Run a write and return the number of rows that it touched."""
    return cast("int", run(sql, params).rowcount)


def touched(sql: str, params: Params = ()) -> bool:
    """Run a write and return True if it touched a row."""
    return execute(sql, params) > 0


@contextlib.contextmanager
def transaction() -> Iterator[None]:
    """Open a transaction; the notifications made inside go out after its commit.

    Steps do not nest: an inner step would commit half of the outer step's work.
    """
    if db.transaction_depth() != 0:
        raise RuntimeError("a step inside a step")
    _drop_ended()
    try:
        with after_commit.kept_back(), db.atomic():
            yield
    except (*_DRIVER_ERRORS, *_REFUSED) as error:
        _drop_ended()
        if _note(error):
            raise StoreUnavailableError(str(error)) from error
        raise
    finally:
        _step.ends_at = None


@contextlib.contextmanager
def long_statements(timeout_ms: int) -> Iterator[None]:
    """Set the time limit of each statement inside; they are the rest of a transaction."""
    execute(f"SET LOCAL statement_timeout = {timeout_ms}")
    connection = db.connection()
    usual_s, connection.patience_s = connection.patience_s, dead_peers.patience_s(timeout_ms)
    try:
        yield
    finally:
        connection.patience_s = usual_s


@contextlib.contextmanager
def part() -> Iterator[None]:
    """Open a part of a transaction that may fail by itself: an exception inside rolls back only the part."""
    if db.transaction_depth() == 0:
        raise RuntimeError("a part outside a step")
    with after_commit.kept_back(), db.savepoint():
        yield


def pgcode(error: BaseException) -> str | None:
    """Return the SQLSTATE behind a psycopg2 or peewee error."""
    for candidate in (error, getattr(error, "orig", None), error.__cause__):
        code = getattr(candidate, "pgcode", None)
        if code:
            return str(code)
    return None


def repeat_on_deadlock(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step, and again if PostgreSQL rolled it back for a deadlock or a serialization failure."""
    for attempt in range(1, STEP_ATTEMPTS + 1):
        try:
            return step(*args, **kwargs)
        except (psycopg2.Error, peewee.PeeweeException) as error:
            if pgcode(error) not in {DEADLOCK, SERIALIZATION_FAILURE} or attempt == STEP_ATTEMPTS:
                raise
            time.sleep(0.01 * attempt)
    raise AssertionError("unreachable")


def app_now() -> datetime:
    """Return the gateway's clock (UTC): the server's, moved in development by `sluice clock advance`."""
    return cast("datetime", value("SELECT app_now()"))


def in_transaction() -> bool:
    """Return True if this thread has an open transaction; checked before the network is used."""
    return db.transaction_depth() > 0 or (
        not db.is_closed() and db.connection().get_transaction_status() != TRANSACTION_STATUS_IDLE
    )

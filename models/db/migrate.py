"""Applies the numbered SQL files once each, in order, one process at a time. Called by `sluice migrate`."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Final

import psycopg2
from psycopg2.extensions import connection

from models.db import grants
from models.db.base import column
from models.db.sessions import pooler

# Any constant will do, as long as no other program uses it on the same database.
ADVISORY_LOCK: Final = 0x534C5543
LOCK_POLL_S: Final = 0.2
# A migration must not queue behind a long reader while every writer queues behind the migration.
LOCK_TIMEOUT_MS: Final = 5_000
# Files with this first line run outside a transaction, statement by statement, for CREATE INDEX CONCURRENTLY. A file
# that fails half-way runs again from its beginning, so it drops an index IF EXISTS before it creates it: a failed build
# leaves an invalid one. Each statement ends with a semicolon at a line's end; no function bodies here.
NO_TRANSACTION: Final = "-- no transaction"
_COMMENT: Final = re.compile(r"^\s*--.*$", re.MULTILINE)
_STATEMENT_END: Final = re.compile(r";[ \t]*$", re.MULTILINE)


class ChangedMigrationError(Exception):
    """A file that was applied has another text now; history is never edited."""


class PendingError(Exception):
    """Migrations are pending, and this login may not apply them."""


class MovedClockError(Exception):
    """A development gateway's database was given to a production gateway."""


def available() -> list[tuple[str, str]]:
    """Return (name, sql) of every migration, in order."""
    folder = resources.files("models.db.migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(f.name, f.read_text(encoding="utf-8")) for f in files]


@contextlib.contextmanager
def _session(url: str) -> Iterator[connection]:
    pooler.refuse(url)
    session = psycopg2.connect(url, application_name="sluice-migrate")
    try:
        session.autocommit = True
        yield session
    finally:
        session.close()


def _applied(session: connection) -> dict[str, str]:
    with session.cursor() as cursor:
        cursor.execute("SELECT to_regclass('schema_migrations') IS NOT NULL")
        row = cursor.fetchone()
        if row is None or not row[0]:
            return {}
        cursor.execute("SELECT name, digest FROM schema_migrations")
        return dict(cursor.fetchall())


def pending(url: str) -> list[str]:
    """Return the names of migrations that this database lacks."""
    with _session(url) as session:
        done = _applied(session)
    return [name for name, _ in available() if name not in done]


def unknown() -> list[str]:
    """Return the names of applied migrations that this version does not have: the schema is newer than the code."""
    return _unknown(column("SELECT name FROM schema_migrations"))


def survey(url: str) -> tuple[list[str], list[str]]:
    """Return the migrations that a database lacks, and those that only a newer version has. Changes nothing."""
    with _session(url) as session:
        done = _applied(session)
    return [name for name, _ in available() if name not in done], _unknown(done)


def _unknown(done: Iterable[str]) -> list[str]:
    return sorted(set(done) - {name for name, _ in available()})


def migrate(url: str, *, is_production: bool = False) -> list[str]:
    """Apply what is pending and return its names; make the grants what they are to be, and production's clock real.

    Safe to run from several machines at once. Under a login that may not migrate it changes nothing, and raises
    PendingError if anything is pending. Raises MovedClockError.
    """
    with _session(url) as session, session.cursor() as cursor:
        if not _may_migrate(session):
            _refuse_pending(session)
            return []
        _wait_for_turn(session)
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, digest text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        done = _applied(session)
        applied = [name for name, sql in available() if _apply(session, name, sql, done)]
        grants.apply(session)
        if is_production:
            _keep_clock_real(session)
        return applied


def _may_migrate(session: connection) -> bool:
    """Return True if the login owns the tables, or no table exists yet."""
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migrations')"
        )
        row = cursor.fetchone()
    return row is None or bool(row[0])


def _refuse_pending(session: connection) -> None:
    done = _applied(session)
    if missing := [name for name, _ in available() if name not in done]:
        raise PendingError(f"this login may not apply what is pending ({', '.join(missing)})")


def _keep_clock_real(session: connection) -> None:
    """Have the database refuse to move its clock from now on."""
    with session.cursor() as cursor:
        cursor.execute("SELECT ahead <> '0', is_real FROM app_clock")
        moved, is_real = cursor.fetchone() or (False, True)
        if moved:
            raise MovedClockError("this database's clock was moved: it is no production gateway's")
        if not is_real:
            cursor.execute("UPDATE app_clock SET is_real = true")


def _wait_for_turn(session: connection) -> None:
    """Take the lock. Polled: a statement that waits holds a snapshot, and CREATE INDEX CONCURRENTLY waits for those."""
    with session.cursor() as cursor:
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", (ADVISORY_LOCK,))
            row = cursor.fetchone()
            if row is not None and row[0]:
                return
            time.sleep(LOCK_POLL_S)


def _statements(sql: str) -> list[str]:
    return [part for part in _STATEMENT_END.split(_COMMENT.sub("", sql)) if part.strip()]


def _apply(session: connection, name: str, sql: str, done: dict[str, str]) -> bool:
    with session.cursor() as cursor:
        cursor.execute("SELECT md5(%s)", (sql,))
        row = cursor.fetchone()
        digest = row[0] if row else ""
        if name in done:
            if done[name] != digest:
                raise ChangedMigrationError(f"{name} was applied with another text")
            return False
        record = cursor.mogrify("INSERT INTO schema_migrations (name, digest) VALUES (%s, %s)", (name, digest)).decode()
        if sql.startswith(NO_TRANSACTION):
            for statement in _statements(sql):
                cursor.execute(statement)
            cursor.execute(record)
        else:
            cursor.execute(f"BEGIN;\nSET LOCAL lock_timeout = {LOCK_TIMEOUT_MS};\n{sql}\n;\n{record};\nCOMMIT")
    return True

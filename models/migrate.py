"""Applies the numbered SQL files once each, in order, one process at a time. Called by `sluice migrate`."""

from __future__ import annotations

import contextlib
from importlib import resources
from typing import TYPE_CHECKING, Final

import psycopg2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg2.extensions import connection

# Any constant will do, as long as no other program uses it on the same database.
ADVISORY_LOCK: Final = 0x534C5543
# A migration must not queue behind a long reader while every writer queues behind the migration.
LOCK_TIMEOUT_MS: Final = 5_000
# Files whose first line says so run outside a transaction, for CREATE INDEX CONCURRENTLY.
NO_TRANSACTION: Final = "-- no transaction"


class ChangedMigrationError(Exception):
    """A file that was applied has another text now; history is never edited."""


def available() -> list[tuple[str, str]]:
    """Return (name, sql) of every migration, in order."""
    folder = resources.files("models.migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(f.name, f.read_text(encoding="utf-8")) for f in files]


@contextlib.contextmanager
def _session(url: str) -> Iterator[connection]:
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


def migrate(url: str) -> list[str]:
    """Apply what is pending and return its names. Safe to run from several machines at once."""
    with _session(url) as session, session.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, digest text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        done = _applied(session)
        return [name for name, sql in available() if _apply(session, name, sql, done)]


def _apply(session: connection, name: str, sql: str, done: dict[str, str]) -> bool:
    with session.cursor() as cursor:
        cursor.execute("SELECT md5(%s)", (sql,))
        row = cursor.fetchone()
        digest = row[0] if row else ""
        if name in done:
            if done[name] != digest:
                raise ChangedMigrationError(f"{name} was applied with another text")
            return False
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", (str(LOCK_TIMEOUT_MS),))
        record = cursor.mogrify("INSERT INTO schema_migrations (name, digest) VALUES (%s, %s)", (name, digest)).decode()
        if sql.startswith(NO_TRANSACTION):
            cursor.execute(sql)
            cursor.execute(record)
        else:
            cursor.execute(f"BEGIN;\n{sql};\n{record};\nCOMMIT")
    return True

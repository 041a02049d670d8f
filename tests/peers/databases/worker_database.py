"""One migrated database for many tests, emptied between them: several times cheaper than one database a test.

Emptying ends all sessions first but the kept ones, in which nothing is under way, so nothing of a test that is over
can write into the next one. A test that changes the schema or the database's settings is noticed, and its database
replaced.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import connection, cursor

from devstack.servers.postgres import Postgres
from tests.peers.databases.effects import EFFECTS
from tests.peers.databases.kept_sessions import KeptSessions
from tests.peers.databases.owner import OWNER

NAME: Final = "shared"
TEMPLATE: Final = "shared_template"
# A table that has grown beyond it is truncated, which costs some milliseconds; a smaller one has its rows deleted.
BYTES_MAX: Final = 64 * 1024
ENDING_LIMIT_S: Final = 10.0

_NOTE_CHANGES: Final = """
    CREATE SCHEMA testing;
    CREATE TABLE testing.changes (command text);
    CREATE FUNCTION testing.note_change() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS
    $$ BEGIN INSERT INTO testing.changes VALUES (tg_tag); END $$;
"""
_WATCH: Final = "CREATE EVENT TRIGGER note_change ON ddl_command_end EXECUTE FUNCTION testing.note_change()"
TABLES: Final = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'testing') ORDER BY 1, 2
"""
SEQUENCES: Final = "SELECT schemaname, sequencename, start_value, last_value FROM pg_sequences ORDER BY 1, 2"
_EMPTY: Final = """
    CREATE FUNCTION testing.empty() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
        large text;
    BEGIN
        SELECT string_agg(name, ', ') INTO large FROM unnest({tables}) AS name
            WHERE pg_relation_size(name::regclass) > {bytes_max};
        IF large IS NOT NULL THEN
            EXECUTE 'TRUNCATE ' || large || ' CASCADE';
        END IF;
        {statements}
    END $$
"""
_RESTORE: Final = """
    IF EXISTS ((TABLE {table} EXCEPT ALL TABLE {seed}) UNION ALL (TABLE {seed} EXCEPT ALL TABLE {table})) THEN
        DELETE FROM {table};
        INSERT INTO {table} TABLE {seed};
    END IF;
"""
_OTHERS: Final = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
        AND pid <> pg_backend_pid() AND pid <> ALL (%(kept)s)
"""
# Its own waiting looks again after 100 ms only; most are gone after two.
_END_OTHERS: Final = f"SELECT pg_terminate_backend(pid) FROM ({_OTHERS}) other"
_IS_CHANGED: Final = """
    SELECT EXISTS (SELECT FROM testing.changes) OR EXISTS (SELECT FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


class WorkerDatabase:
    """The database of one test process. fresh() empties it."""

    running: ClassVar[WorkerDatabase | None] = None

    def __init__(self, server: Postgres, *, template: str) -> None:
        self._server = server
        self.url = server.database_url(NAME)
        self._session: connection | None = None
        self._is_prepared = False
        self._kept = KeptSessions(self.url)
        with admin(server) as at:
            copy_database(at, TEMPLATE, template)
        with contextlib.closing(psycopg2.connect(server.database_url(TEMPLATE))) as session, session:
            _prepare(session.cursor())
        self._replace()
        WorkerDatabase.running = self

    def fresh(self) -> str:
        """Return the address of the database, which holds what the migrations left and nothing else."""
        try:
            is_empty = self._empty()
        except psycopg2.Error:
            # A test ended this session too, or the server with it.
            is_empty = False
        if not is_empty:
            self._replace()
        return self.url

    def finds_none(self, queries: Iterable[str]) -> bool:
        """Return True if none of the queries, always the same ones, has a row; False too if the session has ended."""
        try:
            with self._cursor() as at:
                if not self._is_prepared:
                    at.execute(f"PREPARE find AS SELECT {' OR '.join(f'EXISTS ({query})' for query in queries)}")
                    self._is_prepared = True
                at.execute("EXECUTE find")
                return at.fetchone() == (False,)
        except psycopg2.Error:
            return False

    def end_sessions(self) -> None:
        """End what a test has left open."""
        with contextlib.suppress(psycopg2.Error):
            self._end_sessions(self._cursor())

    def close(self) -> None:
        """Close the session that empties, and the kept ones."""
        self._kept.close()
        if self._session is not None:
            self._session.close()

    def _cursor(self) -> cursor:
        assert self._session is not None
        return self._session.cursor()

    def _empty(self) -> bool:
        """Return True if the database was emptied: changes beyond rows cannot be undone."""
        with self._cursor() as at:
            self._end_sessions(at)
            at.execute(_IS_CHANGED)
            if at.fetchone() != (False,):
                return False
            at.execute("SELECT testing.empty()")
            return True

    def _end_sessions(self, at: cursor) -> None:
        limit = time.monotonic() + ENDING_LIMIT_S
        kept = {"kept": self._kept.pids()}
        at.execute(_END_OTHERS, kept)
        while at.rowcount:
            assert time.monotonic() < limit, "a session of a test that is over does not end"
            time.sleep(0.001)
            at.execute(_OTHERS, kept)

    def _replace(self) -> None:
        self.close()
        with admin(self._server) as at:
            drop_database(at, NAME)
            copy_database(at, NAME, TEMPLATE)
        self._session = psycopg2.connect(self.url)
        self._session.autocommit = True
        self._is_prepared = False
        # Without the triggers that refuse to forget, and without foreign keys.
        self._cursor().execute("SET session_replication_role = replica; SET lock_timeout = '10s'")


def _prepare(at: cursor) -> None:
    at.execute(TABLES)
    tables = [sql.Identifier(*row) for row in at.fetchall()]
    at.execute(SEQUENCES)
    sequences = at.fetchall()
    at.execute(_NOTE_CHANGES)
    at.execute(EFFECTS)
    statements: list[sql.Composable] = [sql.SQL("DELETE FROM testing.effects;")]
    for number, table in enumerate(tables):
        at.execute(sql.SQL("SELECT EXISTS (TABLE {})").format(table))
        if at.fetchone() == (True,):
            seed = sql.Identifier("testing", f"seed_{number}")
            at.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(seed, table))
            statements.append(sql.SQL(_RESTORE).format(table=table, seed=seed))
        else:
            statements.append(sql.SQL("DELETE FROM {};").format(table))
    statements += [
        sql.SQL("PERFORM setval({}, {}, false);").format(
            sql.Literal(sql.Identifier(schema, name).as_string(at)), sql.Literal(start)
        )
        for schema, name, start, _ in sequences
    ]
    names = sql.Literal([table.as_string(at) for table in tables])
    at.execute(
        sql.SQL(_EMPTY).format(
            tables=names, bytes_max=sql.Literal(BYTES_MAX), statements=sql.SQL("\n").join(statements)
        )
    )
    at.execute(_WATCH)


@contextlib.contextmanager
def admin(server: Postgres) -> Iterator[cursor]:
    """A session that makes and drops databases."""
    session = psycopg2.connect(server.url)
    session.autocommit = True
    try:
        with session.cursor() as at:
            yield at
    finally:
        session.close()


def copy_database(at: cursor, name: str, template: str) -> None:
    """Make a database as another one is."""
    names = map(sql.Identifier, (name, template, OWNER))
    at.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*names))


def drop_database(at: cursor, name: str) -> None:
    """Drop a database, with all its connections."""
    at.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

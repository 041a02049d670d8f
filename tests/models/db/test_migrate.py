"""Each migration is applied once, by one process at a time, whole or not at all, and never edited afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Timer
from typing import Any

import psycopg2
import pytest
from psycopg2 import errors

from devstack.servers.postgres import Postgres
from models.db import migrate as db_migrate
from models.db.migrate import (
    NO_TRANSACTION,
    ChangedMigrationError,
    PendingError,
    available,
    migrate,
    pending,
    survey,
)

Files = list[tuple[str, str]]

ONE = ("0001_one.sql", "CREATE TABLE one (id integer);\nINSERT INTO one VALUES (1);\n")
TWO = ("0002_two.sql", "ALTER TABLE one ADD COLUMN share text DEFAULT '50 %' -- the last word")


@pytest.fixture
def url(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    with closing(psycopg2.connect(postgres.url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("DROP DATABASE IF EXISTS empty WITH (FORCE)")
        cursor.execute("CREATE DATABASE empty")
    return postgres.database_url("empty")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    """Return a copy of the migrations, to which a test adds."""
    there: Files = []
    monkeypatch.setattr(db_migrate, "available", lambda: there)
    return there


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_files_are_numbered_and_in_order() -> None:
    names = [name for name, _ in available()]

    assert names == sorted(names)
    assert names[0] == "0001_ground.sql"
    assert all(sql.strip() for _, sql in available())


def test_all_migrations_apply_to_an_empty_database_once(url: str) -> None:
    names = [name for name, _ in available()]

    assert pending(url) == names
    assert migrate(url) == names
    assert pending(url) == []
    assert migrate(url) == []
    assert query(url, "SELECT name FROM schema_migrations ORDER BY name") == [(name,) for name in names]


def test_later_files_are_applied_to_a_migrated_database(url: str, files: Files) -> None:
    files.append(ONE)
    assert migrate(url) == ["0001_one.sql"]
    files.append(TWO)

    assert pending(url) == ["0002_two.sql"]
    assert migrate(url) == ["0002_two.sql"]
    assert query(url, "SELECT id, share FROM one") == [(1, "50 %")]


def test_an_applied_file_must_not_change(url: str, files: Files) -> None:
    files.append(ONE)
    migrate(url)
    files[:] = [("0001_one.sql", ONE[1] + "-- a word more\n"), TWO]

    with pytest.raises(ChangedMigrationError, match=r"0001_one\.sql"):
        migrate(url)
    assert query(url, "SELECT count(*) FROM schema_migrations") == [(1,)]


def test_a_failing_file_is_rolled_back_and_stops_the_following_ones(url: str, files: Files) -> None:
    files[:] = [ONE, ("0002_bad.sql", "CREATE TABLE two (id integer);\nSELECT 1/0;\n"), ("0003_late.sql", "SELECT 1")]

    with pytest.raises(errors.DivisionByZero):
        migrate(url)
    assert query(url, "SELECT to_regclass('one'), to_regclass('two')") == [("one", None)]
    assert pending(url) == ["0002_bad.sql", "0003_late.sql"]

    files[1] = ("0002_bad.sql", "CREATE TABLE two (id integer)")
    assert migrate(url) == ["0002_bad.sql", "0003_late.sql"]


CONCURRENT = (
    "0003_index.sql",
    f"{NO_TRANSACTION}: writers go on meanwhile\n"
    "DROP INDEX CONCURRENTLY IF EXISTS one_by_id;\n"
    "CREATE INDEX CONCURRENTLY one_by_id\n    ON one (id); \n"
    "-- and another\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS one_by_share ON one (share);\n-- no more\n",
)


def test_a_file_can_run_outside_a_transaction(url: str, files: Files) -> None:
    files[:] = [ONE, TWO, CONCURRENT]

    assert migrate(url) == ["0001_one.sql", "0002_two.sql", "0003_index.sql"]
    assert query(url, "SELECT count(*) FROM pg_indexes WHERE tablename = 'one'") == [(2,)]
    assert pending(url) == []


def test_a_failed_file_outside_a_transaction_runs_again_from_its_start(url: str, files: Files) -> None:
    name, sql = CONCURRENT
    files[:] = [ONE, TWO, (name, sql.replace("one (share)", "one (no_such)"))]
    with pytest.raises(errors.UndefinedColumn):
        migrate(url)
    assert pending(url) == [name]

    files[2] = CONCURRENT
    assert migrate(url) == [name]


def test_two_concurrent_migrations_apply_everything_once(url: str, files: Files) -> None:
    # Building an index waits for every older snapshot, such as that of the migration that waits for its turn.
    files[:] = [("0001_slow.sql", ONE[1] + "SELECT pg_sleep(0.3);\n"), TWO, CONCURRENT]

    with ThreadPoolExecutor(3) as pool:
        applied = list(pool.map(migrate, [url] * 3))

    assert sorted(map(len, applied)) == [0, 0, 3]
    assert query(url, "SELECT id FROM one") == [(1,)]


@pytest.fixture
def stranger(url: str) -> Iterator[str]:
    """Return the URL of the empty database for a login that owns nothing."""
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        session.autocommit = True
        cursor.execute("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
        yield re.sub("//[^@]+@", "//stranger:stranger@", url)
        cursor.execute("DROP OWNED BY stranger; DROP ROLE stranger")


def test_a_login_that_may_not_migrate_succeeds_if_nothing_is_pending(url: str, files: Files, stranger: str) -> None:
    files.append(ONE)
    migrate(url)
    query(url, "GRANT SELECT ON schema_migrations TO stranger; COMMIT; SELECT 1")
    assert migrate(stranger, is_production=True) == []

    files.append(TWO)
    with pytest.raises(PendingError, match=r"0002_two\.sql"):
        migrate(stranger)
    assert migrate(url) == ["0002_two.sql"]
    assert migrate(stranger) == []


def test_a_survey_names_what_is_pending_and_what_only_a_newer_version_has(url: str, files: Files) -> None:
    files[:] = [ONE, TWO]
    assert survey(url) == (["0001_one.sql", "0002_two.sql"], [])
    migrate(url)
    files[:] = [ONE, ("0002_other.sql", "SELECT 1")]

    assert survey(url) == (["0002_other.sql"], ["0002_two.sql"])
    files[:] = [ONE]
    assert migrate(url) == []


def test_a_migration_does_not_block_writers_for_long(url: str, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_migrate, "LOCK_TIMEOUT_MS", 100)
    files.append(ONE)
    migrate(url)
    files.append(TWO)

    with closing(psycopg2.connect(url)) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT * FROM one")
        patience = Timer(5.0, reader.close)
        patience.start()
        with pytest.raises(errors.LockNotAvailable):
            migrate(url)
        patience.cancel()

    assert migrate(url) == ["0002_two.sql"]

"""A test never finds another one's leftovers: rows, clocks, sequences, sessions, locks, schemas, settings."""

from __future__ import annotations

import contextlib

import psycopg2
import pytest
from psycopg2.extensions import connection

from devstack.servers.postgres import Postgres
from tests.conftest import TEMPLATE
from tests.peers.databases.worker_database import BYTES_MAX, WorkerDatabase

TABLES = """
    SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
    WHERE table_schema IN ('public', 'signer') AND table_type = 'BASE TABLE' ORDER BY 1
"""
SEQUENCES = "SELECT sequencename, coalesce(last_value::text, 'new') FROM pg_sequences WHERE schemaname <> 'testing'"
MERCHANT = "INSERT INTO owners (id, name) SELECT gen_random_uuid(), repeat('x', 100) FROM generate_series(1, %s)"


def open_session(url: str) -> connection:
    session = psycopg2.connect(url)
    session.autocommit = True
    return session


def run(url: str, *commands: str) -> None:
    with contextlib.closing(open_session(url)) as session, session.cursor() as cursor:
        for command in commands:
            cursor.execute(command)


def content(url: str) -> list[tuple[object, ...]]:
    with contextlib.closing(open_session(url)) as session, session.cursor() as cursor:
        cursor.execute(TABLES)
        names = dict.fromkeys(name for (name,) in cursor.fetchall())
        for name in names:
            cursor.execute(f"SELECT string_agg(r::text, ', ' ORDER BY r::text) FROM {name} r")
            names[name] = cursor.fetchall()
        cursor.execute(SEQUENCES)
        return [*names.items(), *sorted(cursor.fetchall())]


@pytest.fixture
def untouched(postgres: Postgres) -> list[tuple[object, ...]]:
    return content(postgres.database_url(TEMPLATE))


@pytest.mark.parametrize("rows", [1, BYTES_MAX // 50], ids=["few rows", "more than are deleted one by one"])
def test_rows_that_refer_to_each_other_are_gone(
    worker_database: WorkerDatabase, untouched: list[tuple[object, ...]], rows: int
) -> None:
    url = worker_database.fresh()
    before = oid(url)
    run(
        url,
        MERCHANT % rows,
        "INSERT INTO merchants (id, owner_id, name) SELECT gen_random_uuid(), id, name FROM owners",
        # A row that may not be deleted, and refers to one that is deleted before it.
        "SET session_replication_role = replica",
        "INSERT INTO ledger_transfers (reference, leg, debit_account, credit_account, currency, units)"
        " VALUES ('test', 1, 1, 2, 'USDT', 1)",
    )
    assert content(url) != untouched
    assert (content(worker_database.fresh()), oid(url)) == (untouched, before)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE app_clock SET ahead = '1 hour'",
        "DELETE FROM app_clock",
        "INSERT INTO address_marks (family, marked_at, ordinal) VALUES ('evm', now(), 5)",
        "SELECT nextval('address_claims_evm') FROM generate_series(1, 3)",
    ],
)
def test_rows_of_migrations_are_restored(
    worker_database: WorkerDatabase, untouched: list[tuple[object, ...]], change: str
) -> None:
    url = worker_database.fresh()
    before = oid(url)
    run(url, change)
    assert content(url) != untouched
    assert (content(worker_database.fresh()), oid(url)) == (untouched, before)


def test_a_step_and_its_locks_end_with_their_test(
    worker_database: WorkerDatabase, untouched: list[tuple[object, ...]]
) -> None:
    with contextlib.closing(psycopg2.connect(worker_database.fresh())) as left, left.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
        cursor.execute("LOCK TABLE owners")
        assert content(worker_database.fresh()) == untouched
        with pytest.raises(psycopg2.OperationalError):
            cursor.execute("INSERT INTO owners (id, name) VALUES (gen_random_uuid(), 'late')")


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE left_over (id integer)",
        "ALTER DATABASE shared SET statement_timeout = 1",
        "GRANT DELETE ON ledger_transfers TO sluice_web",
        "DROP TRIGGER ledger_transfers_append_only ON ledger_transfers",
        "CREATE OR REPLACE FUNCTION app_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()'",
    ],
)
def test_a_changed_schema_or_setting_is_put_back(worker_database: WorkerDatabase, change: str) -> None:
    url = worker_database.fresh()
    before = oid(url)
    run(url, change)
    assert oid(worker_database.fresh()) != before


def test_a_test_that_ends_all_sessions_leaves_a_database(
    worker_database: WorkerDatabase, untouched: list[tuple[object, ...]]
) -> None:
    run(
        worker_database.fresh(),
        MERCHANT % 1,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
    )
    assert content(worker_database.fresh()) == untouched


def oid(url: str) -> int:
    """Return the id of a database, which differs between two of the same name."""
    with contextlib.closing(open_session(url)) as session, session.cursor() as cursor:
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])

"""The next test gets a session that was closed, without anything that was set, held or begun in it."""

from __future__ import annotations

import contextlib

import psycopg2
import pytest

from models.db import base
from models.db.base import execute, one, value
from tests.models.db.collisions import at_once
from tests.peers.databases.kept_sessions import KEPT_MAX
from tests.peers.databases.worker_database import WorkerDatabase


def pid() -> int:
    return int(value("SELECT pg_backend_pid()"))


def next_test(shared: WorkerDatabase, **options: object) -> int:
    """Go on as the fixtures do between two tests; return the new one's session."""
    base.close()
    shared.end_sessions()
    base.connect(shared.fresh(), **options)  # type: ignore[arg-type]
    return pid()


@pytest.fixture(autouse=True)
def shared(worker_database: WorkerDatabase, database: str) -> WorkerDatabase:
    del database
    # One that a test was refused would be served from what others closed before.
    worker_database._kept.close()
    return worker_database


def test_the_next_test_has_the_session(shared: WorkerDatabase) -> None:
    assert next_test(shared) == pid()
    before = pid()
    assert next_test(shared) == before


def test_a_test_that_connects_again_has_another() -> None:
    before = pid()
    base.close()

    assert pid() != before


def test_another_kind_of_session_is_another(shared: WorkerDatabase) -> None:
    before = pid()

    assert next_test(shared, statement_timeout_ms=50) != before
    assert value("SHOW statement_timeout") == "50ms"


def test_nothing_stays_that_was_set_or_held(shared: WorkerDatabase) -> None:
    before = pid()
    execute("SET statement_timeout = 7")
    execute("SET ROLE sluice_web")
    one("SELECT pg_advisory_lock(7)")

    assert next_test(shared) == before
    assert one("SELECT current_setting('statement_timeout'), current_role") == ("10s", "sluice")
    assert value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


def test_an_open_transaction_ends_with_the_session(shared: WorkerDatabase) -> None:
    before = pid()
    execute("BEGIN")
    execute("LOCK TABLE owners")

    assert next_test(shared) != before


def test_a_session_that_the_server_ended_is_not_reused(shared: WorkerDatabase) -> None:
    before = pid()
    base.close()
    with contextlib.closing(psycopg2.connect(shared.url)) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", (before,))

    assert next_test(shared) != before
    assert base.db.connection().closed == 0


def test_of_many_some_are_kept(shared: WorkerDatabase) -> None:
    at_once(KEPT_MAX + 2, lambda _: pid())
    next_test(shared)

    # One of them is this test's now.
    assert len(shared._kept.pids()) == KEPT_MAX - 1

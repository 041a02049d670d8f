"""One connection a thread, one transaction a step, whole numbers only, and errors for a lost server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import psycopg2
import pytest
from psycopg2 import errors

from devstack.supervise.ports import free_port
from models.db import base
from models.db.base import (
    StoreUnavailableError,
    column,
    execute,
    is_true,
    one,
    one_as,
    repeat_on_deadlock,
    rows,
    rows_as,
    touched,
    transaction,
    value,
)
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")


def pid() -> int:
    return int(value("SELECT pg_backend_pid()"))


def terminate(url: str, backend: int) -> None:
    """End a session, as an operator or a restart does; return when it is gone."""
    with closing(psycopg2.connect(url)) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", (backend,))
        assert cursor.fetchone() == (True,)


@pytest.fixture
def table(database: str) -> None:
    del database  # connected to first
    execute("CREATE TABLE things (id integer PRIMARY KEY, n numeric NOT NULL DEFAULT 0)")


def things() -> list[int]:
    return column("SELECT id FROM things ORDER BY id")


def add(number: int) -> None:
    execute("INSERT INTO things VALUES (%s)", (number,))


def step(*works: Callable[[], object]) -> None:
    with transaction():
        for work in works:
            work()


def fail() -> None:
    raise LookupError


# Numbers ----------------------------------------------------------------------------------------------------


def test_a_float_is_refused_by_the_database() -> None:
    for number in (1.0, [1.5], float("nan")):
        with pytest.raises(TypeError, match="money is integer units"):
            one("SELECT %s", (number,))


def test_units_are_read_back_as_the_same_int() -> None:
    units = 10**77 + 1

    assert one("SELECT %s::units, sum(%s::units)", (units, units)) == (units, units)
    assert type((one("SELECT 5::units") or ())[0]) is int


def test_a_rate_keeps_its_fraction() -> None:
    assert one("SELECT 0.1::numeric(40, 18), NULL::numeric") == (Decimal("0.100000000000000000"), None)


# Answers ----------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: int
    right: str = "none"


class Struct(msgspec.Struct, frozen=True):
    left: int
    right: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    left: int
    right: str = "none"


def test_a_value_is_the_first_column_of_the_first_row() -> None:
    assert value("SELECT 0, 1 UNION ALL SELECT 2, 3") == 0
    assert value("SELECT NULL::integer") is None
    assert value("SELECT 1 WHERE %s", (False,)) is None


def test_is_true_needs_a_row_whose_first_value_is_true() -> None:
    assert is_true("SELECT 1, false")
    assert is_true("SELECT %s", (True,))
    for no in ("SELECT 1 WHERE false", "SELECT false, 1", "SELECT NULL::boolean"):
        assert is_true(no) is False


@pytest.mark.usefixtures("table")
def test_a_write_without_a_matching_row_touches_none() -> None:
    add(1)
    assert touched("UPDATE things SET n = 2 WHERE id = %s", (1,)) is True
    assert touched("UPDATE things SET n = 2 WHERE id = %s", (2,)) is False


def test_a_column_has_the_first_value_of_all_rows() -> None:
    assert column("SELECT n, 9 FROM generate_series(1, %s) AS n", (3,)) == [1, 2, 3]
    assert column("SELECT 1 WHERE false") == []


@pytest.mark.parametrize("kind", [Pair, Struct, Record])
def test_rows_are_filled_by_column_names(kind: type[Pair | Struct | Record]) -> None:
    stored = rows_as(kind, "SELECT 'r' || n AS right, n AS left FROM generate_series(1, %s) AS n", (2,))

    assert stored == [kind(left=1, right="r1"), kind(left=2, right="r2")]
    assert one_as(kind, "SELECT 5 AS left") == kind(left=5)
    assert one_as(kind, "SELECT 5 AS left WHERE false") is None
    for wrong in ("SELECT 'r' AS right", "SELECT 1 AS left, 2 AS other"):
        with pytest.raises(TypeError):
            rows_as(kind, wrong)


# Steps ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_a_step_commits_wholly_or_not_at_all() -> None:
    step(lambda: add(1), lambda: add(2))
    with pytest.raises(LookupError):
        step(lambda: add(3), fail)

    assert things() == [1, 2]
    assert not base.in_transaction()


@pytest.mark.usefixtures("table")
def test_a_step_cannot_be_nested() -> None:
    with pytest.raises(RuntimeError, match="a step inside a step"):
        step(lambda: add(1), step)

    assert things() == []


@pytest.mark.usefixtures("table")
def test_a_statement_outside_a_step_is_its_own_step(database_url: str) -> None:
    execute("INSERT INTO things VALUES (1)")

    with closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM things")
        assert cursor.fetchone() == (1,)


def test_a_thread_knows_whether_it_is_in_a_step() -> None:
    assert not base.in_transaction()
    with transaction():
        assert base.in_transaction()
    assert not base.in_transaction()


def test_every_thread_has_a_connection_of_its_own() -> None:
    pids = at_once(4, lambda _: pid())

    assert len({*pids, pid()}) == 5


def in_another_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_returned_connection_serves_the_next_thread() -> None:
    mine, others = pid(), list[int]()
    base.release()

    in_another_thread(lambda: (others.append(pid()), base.release()))

    assert others == [mine]
    assert pid() == mine


def test_a_connection_is_not_returned_in_the_middle_of_a_step() -> None:
    with transaction():
        mine = pid()
        base.release()
        in_another_thread(lambda: (pid(), base.close()))
        assert pid() == mine


def test_a_connection_that_is_not_idle_is_closed_and_not_returned() -> None:
    mine = pid()
    base.db.connection().cursor().execute("BEGIN")

    base.release()

    assert pid() != mine


def test_a_returned_connection_cut_while_unused_is_replaced(database_url: str) -> None:
    mine = pid()
    base.release()
    terminate(database_url, mine)

    assert pid() != mine


def test_closing_also_closes_unused_connections() -> None:
    mine = pid()
    base.release()

    base.close()

    assert pid() != mine


def test_a_refused_statement_gives_its_reason_and_leaves_the_connection_usable() -> None:
    before = pid()
    with pytest.raises(errors.DivisionByZero):
        one("SELECT 1/0")
    with pytest.raises(errors.DivisionByZero), transaction():
        one("SELECT 1/0")

    assert pid() == before


# Loss of the server -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_a_connection_cut_while_idle_is_replaced(database_url: str) -> None:
    terminate(database_url, pid())
    assert execute("INSERT INTO things VALUES (1)") == 1

    terminate(database_url, pid())
    step(lambda: add(2))

    assert things() == [1, 2]


@pytest.mark.usefixtures("table")
def test_a_step_whose_connection_is_cut_raises(database_url: str) -> None:
    with pytest.raises(StoreUnavailableError):
        step(lambda: add(1), lambda: terminate(database_url, pid()), lambda: add(2))

    assert not base.in_transaction()
    assert things() == []


@pytest.mark.usefixtures("table")
def test_a_cut_step_does_not_continue_over_another_connection(database_url: str) -> None:
    def fails(number: int) -> None:
        with pytest.raises(StoreUnavailableError):
            add(number)

    with pytest.raises(StoreUnavailableError):
        step(lambda: terminate(database_url, pid()), lambda: fails(1), lambda: fails(2))

    assert things() == []


@pytest.mark.usefixtures("table")
def test_a_step_cut_before_its_commit_is_lost(database_url: str) -> None:
    with pytest.raises(StoreUnavailableError):
        step(lambda: add(1), lambda: terminate(database_url, pid()))

    assert things() == []


@pytest.mark.usefixtures("table")
def test_a_statement_cut_while_running_is_not_repeated(database_url: str) -> None:
    cutter = threading.Timer(0.2, terminate, (database_url, pid()))
    cutter.start()
    with pytest.raises(StoreUnavailableError):
        execute("INSERT INTO things (id, n) SELECT count(*), 1 FROM things, pg_sleep(5)")
    cutter.join()

    assert things() == []


def test_a_server_message_while_idle_does_not_close_the_connection(database_url: str) -> None:
    before = pid()
    execute("LISTEN news")
    with closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
        cursor.execute("NOTIFY news")
        other.commit()

    assert pid() == before


def test_an_absent_server_is_unavailable(database_url: str) -> None:
    parts = urlsplit(database_url)
    base.connect(parts._replace(netloc=f"{parts.username}:x@127.0.0.1:{free_port()}").geturl())

    with pytest.raises(StoreUnavailableError):
        one("SELECT 1")
    with pytest.raises(StoreUnavailableError), transaction():
        raise AssertionError("unreachable")
    assert not base.in_transaction()

    base.connect(database_url)
    assert one("SELECT 1") == (1,)


def test_connecting_to_another_database_closes_open_connections(database_url: str) -> None:
    before = pid()
    base.connect(database_url)

    assert pid() != before


# Settings of the session ------------------------------------------------------------------------------------


def test_every_part_of_the_address_is_used(database_url: str) -> None:
    base.connect(database_url.replace("postgresql://", "postgres://") + "?sslmode=require")

    # The tests' server has no TLS: this would pass if sslmode were dropped.
    with pytest.raises(StoreUnavailableError, match="SSL"):
        one("SELECT 1")


def test_statements_and_locks_have_time_limits(database_url: str) -> None:
    base.connect(database_url, statement_timeout_ms=50, application_name="tested")

    with pytest.raises(errors.QueryCanceled):
        one("SELECT pg_sleep(5)")
    assert one("SELECT current_setting('lock_timeout'), current_setting('application_name')") == ("2s", "tested")


def test_times_are_utc() -> None:
    now = base.app_now()

    assert now.tzinfo is not None
    assert now.utcoffset() == timedelta(0)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_the_clock_can_be_moved() -> None:
    before = base.app_now()
    execute("UPDATE app_clock SET ahead = '2 hours'")

    assert timedelta(hours=2) < base.app_now() - before < timedelta(hours=2, minutes=1)


# Deadlocks --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_the_victim_of_a_deadlock_repeats_its_step() -> None:
    execute("INSERT INTO things VALUES (1), (2)")
    meet = threading.Barrier(2)
    attempts = [0, 0]

    def work(number: int) -> None:
        def cross() -> None:
            attempts[number] += 1
            with transaction():
                execute("UPDATE things SET n = n + 1 WHERE id = %s", (1 + number,))
                if attempts[number] == 1:
                    meet.wait(timeout=60)
                execute("UPDATE things SET n = n + 1 WHERE id = %s", (2 - number,))

        repeat_on_deadlock(cross)

    assert at_once(2, work) == [None, None]
    # The victim may take its row again before the other gets it, and be the victim once more.
    assert max(attempts) >= 2
    assert rows("SELECT n FROM things ORDER BY id") == [(2,), (2,)]


class _Deadlock(errors.DeadlockDetected):
    pgcode = base.DEADLOCK


def test_repetitions_of_a_step_are_bounded() -> None:
    attempts = 0

    def stuck() -> None:
        nonlocal attempts
        attempts += 1
        raise _Deadlock

    with pytest.raises(errors.DeadlockDetected):
        repeat_on_deadlock(stuck)
    assert attempts == base.STEP_ATTEMPTS


@pytest.mark.usefixtures("table")
def test_errors_other_than_deadlocks_are_not_repeated() -> None:
    attempts = 0

    def wrong() -> None:
        nonlocal attempts
        attempts += 1
        step(lambda: add(1), lambda: add(1))

    with pytest.raises(errors.UniqueViolation):
        repeat_on_deadlock(wrong)
    assert attempts == 1


@pytest.mark.usefixtures("table")
def test_a_lock_held_too_long_is_an_error_with_its_code(database_url: str) -> None:
    execute("INSERT INTO things VALUES (1)")
    base.execute("SET lock_timeout = 50")
    with closing(psycopg2.connect(database_url)) as other, other.cursor() as cursor:
        cursor.execute("SELECT 1 FROM things FOR UPDATE")
        with pytest.raises(errors.LockNotAvailable) as caught:
            execute("UPDATE things SET n = 1")

    assert base.pgcode(caught.value) == base.LOCK_NOT_AVAILABLE

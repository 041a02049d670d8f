from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from models.db import base
from models.db.base import one
from models.db.locks import single_flight

pytestmark = pytest.mark.usefixtures("database")


def held_elsewhere(name: str = "poll:ethereum") -> bool:
    """Return True if another thread, and so another session, is refused."""
    outcome: list[bool] = []

    def attempt() -> None:
        with single_flight(name) as mine:
            outcome.append(mine)
        base.close()

    other = threading.Thread(target=attempt)
    other.start()
    other.join()
    return not outcome[0]


@pytest.fixture
def holding(database: str) -> Iterator[None]:
    del database
    with single_flight("poll:ethereum") as mine:
        assert mine
        yield


@pytest.mark.usefixtures("holding")
def test_a_lock_has_one_holder() -> None:
    assert held_elsewhere()


@pytest.mark.usefixtures("holding")
def test_locks_of_other_names_are_free() -> None:
    assert not held_elsewhere("poll:polygon")


def test_a_lock_is_free_after_the_work() -> None:
    with single_flight("poll:ethereum"):
        pass

    assert not held_elsewhere()


def test_a_lock_is_free_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), single_flight("poll:ethereum"):
        raise ZeroDivisionError

    assert not held_elsewhere()


def test_a_refused_thread_releases_nothing() -> None:
    with single_flight("poll:ethereum") as mine:
        assert mine
        assert held_elsewhere()
        assert held_elsewhere()


def test_no_transaction_is_open_during_the_work() -> None:
    with single_flight("poll:ethereum"):
        assert not base.in_transaction()


def test_a_lost_session_frees_its_lock_without_an_error(database_url: str) -> None:
    with single_flight("poll:ethereum"):
        row = one("SELECT pg_backend_pid()")
        assert row is not None
        with closing(psycopg2.connect(database_url)) as admin, admin.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", row)
        assert not held_elsewhere()

    assert one("SELECT 1") == (1,)


def test_a_session_whose_unlock_fails_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = base.one

    def failing(sql: str, params: base.Params = ()) -> object:
        if "unlock" in sql:
            raise psycopg2.DataError("as planned")
        return run(sql, params)

    monkeypatch.setattr(base, "one", failing)
    with pytest.raises(psycopg2.DataError), single_flight("poll:ethereum"):
        pass
    monkeypatch.setattr(base, "one", run)

    assert not held_elsewhere()

"""Closes connections that stay unused after a crowd, except the one used last."""

from __future__ import annotations

from typing import Any

import pytest

from models.db import unused
from models.db.unused import Unused


class Connection:
    is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def pool() -> Any:
    return Unused(is_open=lambda connection: connection.is_open)  # type: ignore[attr-defined]


def give_back(pool: Any, *connections: Connection) -> None:
    for connection in connections:
        pool.give_back(connection, close=Connection.close)


def test_the_connection_used_last_is_taken_first(pool: Any) -> None:
    first, second = Connection(), Connection()
    give_back(pool, first, second)

    assert [pool.take(), pool.take(), pool.take()] == [second, first, None]


def test_a_connection_closed_meanwhile_is_skipped(pool: Any) -> None:
    first, second = Connection(), Connection()
    give_back(pool, first, second)
    second.is_open = False

    assert pool.take() is first


def test_connections_unused_for_long_are_closed_except_the_last(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unused, "IDLE_LOOK_S", 0.0)
    first, second, last = Connection(), Connection(), Connection()
    give_back(pool, first, second)
    assert first.is_open

    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)
    give_back(pool, last)

    assert [first.is_open, second.is_open, last.is_open] == [False, False, True]


def test_a_forked_child_takes_no_connection_of_its_parent(pool: Any) -> None:
    give_back(pool, Connection())

    pool.forget()

    assert pool.take() is None


def test_all_can_be_closed(pool: Any) -> None:
    connections = [Connection(), Connection()]
    give_back(pool, *connections)

    pool.close_all(close=Connection.close)

    assert not any(connection.is_open for connection in connections)
    assert pool.take() is None

"""Unused connections: the last one serves first, and those that a crowd left behind are closed, without a later use."""

from __future__ import annotations

import os
import time

import pytest

from models.db.sessions import unused
from models.db.sessions.unused import Unused


class Connection:
    is_open = True

    def close(self) -> None:
        self.is_open = False


Pool = Unused[Connection]


@pytest.fixture
def pool() -> Pool:
    return Unused(is_open=lambda connection, _used_at: connection.is_open, close=Connection.close)


def give_back(pool: Pool, *connections: Connection) -> None:
    for connection in connections:
        pool.give_back(connection)


def test_the_connection_used_last_is_taken_first(pool: Pool) -> None:
    first, second = Connection(), Connection()
    give_back(pool, first, second)

    assert [pool.take(), pool.take(), pool.take()] == [second, first, None]


def test_a_connection_closed_meanwhile_is_skipped(pool: Pool) -> None:
    first, second = Connection(), Connection()
    give_back(pool, first, second)
    second.is_open = False

    assert pool.take() is first


def test_connections_unused_for_long_are_closed_except_the_last(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unused, "IDLE_LOOK_S", 0.0)
    first, second, last = Connection(), Connection(), Connection()
    give_back(pool, first, second)
    assert first.is_open

    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)
    give_back(pool, last)

    assert [first.is_open, second.is_open, last.is_open] == [False, False, True]


def test_connections_are_closed_without_a_later_use_except_the_last(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Pool(is_open=lambda connection, _used_at: connection.is_open, close=Connection.close)
    connections = [Connection() for _ in range(5)]
    give_back(pool, *connections[:3])
    give_back(other, *connections[3:])
    unused.close_idle()
    assert (len(pool), len(other)) == (3, 2)

    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)
    unused.close_idle()

    assert [connection.is_open for connection in connections] == [False, False, True, False, True]
    assert (pool.take(), other.take()) == (connections[2], connections[4])


def test_a_look_is_given_the_time_of_the_last_use() -> None:
    used: list[float] = []

    def is_open(_: Connection, used_at: float) -> bool:
        used.append(used_at)
        return True

    pool = Pool(is_open=is_open, close=Connection.close)
    before = time.monotonic()
    give_back(pool, Connection())
    pool.take()
    assert before <= used[0] <= time.monotonic()


def test_a_forked_child_takes_no_connection_of_its_parent(pool: Pool) -> None:
    mine = Connection()
    give_back(pool, mine)
    child = os.fork()
    if child == 0:
        os._exit(0 if pool.take() is None and mine.is_open else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert pool.take() is mine


def test_all_can_be_closed(pool: Pool) -> None:
    connections = [Connection(), Connection()]
    give_back(pool, *connections)

    pool.close_all()

    assert not any(connection.is_open for connection in connections)
    assert pool.take() is None

"""Requests that wait for a thread: each source has its turn, however many requests another one has."""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]

from api.http import worker
from api.http.arrival import Verdict
from api.http.connection import Connection
from api.http.crowd import Crowd
from api.http.turns import Turns
from api.http.worker import BoundedThreadWorker
from api.limits.sources import source_of


def a_source(address: str) -> Any:
    return source_of(ip_address(address))


def test_sources_take_turns_and_each_source_s_oldest_is_first() -> None:
    turns = Turns()
    queued = ["203.0.113.1", "203.0.113.1", "203.0.113.1", "2001:db8::1", "2001:db8:0:ffff::1", "203.0.113.2"]
    conns = [Mock(number=number) for number in range(len(queued))]
    for conn, address in zip(conns, queued, strict=True):
        turns.add(conn, a_source(address))
    turns.remove(conns[1], a_source("203.0.113.1"))

    taken = []
    while turns:
        taken.append(turns.take().number)
    assert taken == [0, 3, 5, 2, 4], "a /48 has one turn"


def test_the_last_request_of_a_source_leaves_nothing_behind() -> None:
    turns = Turns()
    turns.add(conn := Mock(), a_source("203.0.113.1"))
    turns.remove(conn, a_source("203.0.113.1"))

    assert not turns


class Pool:
    """A worker with one thread, which waits until it may go on."""

    def __init__(self) -> None:
        config = Config()
        config.set("threads", 1)
        self.worker: Any = BoundedThreadWorker(0, 0, [], None, 30, config, None)
        self.worker.tmp.close()
        self.worker.tpool = self.worker._health = ThreadPoolExecutor(1)
        self.stays = True
        self.worker._receiving, self.worker._sending, self.worker._lingering = Mock(), Mock(), Mock()
        self.worker._crowd = Crowd()
        self.worker._serve = self._serve
        self.go_on, self.served = Event(), []
        self.sockets: list[socket.socket] = []

    def _serve(self, conn: Connection, *, stays: bool = False) -> None:
        assert stays is self.stays
        self.go_on.wait(60)
        self.served.append(conn.client[0])

    def ask(self, address: str, verdict: Verdict = Verdict.WHOLE) -> Connection:
        ours, client = socket.socketpair()
        conn = Connection(Config(), ours, (address, 1), ("127.0.0.1", 2))
        self.sockets += [conn.sock, client]
        self.worker.nr_conns += 1
        self.worker._answer(conn, verdict)
        return conn


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.go_on.set()
    made.worker.tpool.shutdown()
    for sock in made.sockets:
        sock.close()


def test_a_flood_from_one_source_delays_no_other_source(pool: Pool) -> None:
    flood = [pool.ask("203.0.113.1") for _ in range(20)]
    pool.ask("203.0.113.2")
    ended = next(conn for conn in flood if conn.source)
    # A full process ends requests of the flood that have no thread yet, too.
    assert pool.worker._crowd.end_oldest()
    assert ended.sock.fileno() == -1

    pool.go_on.set()
    while pool.worker._turns:
        pool.worker.finish_request(flood[0], False)
    pool.worker.tpool.shutdown()

    assert len(pool.served) == 20
    assert pool.served.index("203.0.113.2") <= 4
    assert not pool.worker._crowd.end_oldest(), "none is counted any longer"


def test_a_flood_of_health_checks_is_counted_while_it_waits_for_its_thread(pool: Pool) -> None:
    pool.stays = False
    flood = [pool.ask("203.0.113.1", Verdict.HEALTH) for _ in range(20)]
    pool.ask("203.0.113.2", Verdict.HEALTH)

    # If the flood were not counted, a full process would end the connection of a source that has just one.
    assert pool.worker._crowd.end_oldest()
    assert [conn.sock.fileno() for conn in flood].count(-1) == 1

    pool.go_on.set()
    while pool.worker._health_turns:
        pool.worker.finish_request(flood[0], False)
    pool.worker.tpool.shutdown()
    assert len(pool.served) == 20
    assert not pool.worker._crowd.end_oldest(), "none is counted any longer"


def test_a_process_without_files_makes_room_and_lives(pool: Pool) -> None:
    pool.ask("203.0.113.1")
    pool.ask("203.0.113.1")
    waiting = pool.ask("203.0.113.1")
    listener = Mock()
    listener.accept.side_effect = OSError(errno.EMFILE, "Too many open files")

    pool.worker.accept(listener)

    assert waiting.sock.fileno() == -1
    listener.accept.side_effect = OSError(errno.EBADF, "Bad file descriptor")
    with pytest.raises(OSError, match="Bad file"):
        pool.worker.accept(listener)


@pytest.mark.parametrize(
    ("limits", "raised"),
    [
        ((1024, 4096), (3024, 4096)),
        ((1024, 2048), (2048, 2048)),
        ((1024, -1), (3024, -1)),
        ((4096, 4096), None),
        ((-1, -1), None),
    ],
)
def test_a_worker_may_open_files_for_all_of_its_connections(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised: tuple[int, int] | None
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: set_to.append(limit))

    worker._allow_files(2000 + worker.FILES)

    assert set_to == ([] if raised is None else [raised])

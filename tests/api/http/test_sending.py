"""The unsent rest of an answer waits for a limited time, within a limited sum, and counts for its source."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]

from api.http.connection import Connection
from api.http.crowd import UNKNOWN, Crowd
from api.http.sending import Sending
from tests.api.http.loops import ClientLoop

UNSENT_MAX = 9_000_000
ANSWER = b"x" * 2_000_000


class Loop(ClientLoop):
    """A loop that sends, and what became of its connections."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Connection, bool]] = []
        self.dropped: list[Connection] = []
        self.crowd = Crowd()
        self.sending = Sending(
            self.poller,
            self.crowd,
            done=lambda conn, is_kept: self.done.append((conn, is_kept)),
            dropped=self._drop,
            unsent_bytes_max=UNSENT_MAX,
        )

    def _drop(self, conn: Connection) -> None:
        self.dropped.append(conn)
        conn.close()

    def answer(self, source: str, answer: bytes = ANSWER, *, is_kept: bool = True) -> Connection:
        """Answer a client that reads nothing."""
        conn = self.connection(source)
        conn.sock.sendall(b"head")
        conn.sock.sendall(answer)
        assert not conn.sock.flush()
        self.sending.begin(conn, self.crowd.peer_source(conn), is_kept=is_kept, limit_s=30)
        return conn


@pytest.fixture
def loop() -> Iterator[Loop]:
    started = Loop()
    yield started
    started.close()


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_answer_goes_out_as_its_client_reads(loop: Loop, *, is_kept: bool) -> None:
    conn = loop.answer("203.0.113.1", is_kept=is_kept)
    loop.turn()
    assert loop.done == []

    read = b""
    while not loop.done:
        read += loop.clients[conn].recv(65536)
        loop.turn()
    loop.clients[conn].setblocking(False)
    while len(read) < len(ANSWER) + 4:
        read += loop.clients[conn].recv(65536)

    assert read == b"head" + ANSWER
    assert loop.done == [(conn, is_kept)]
    assert not loop.crowd.end_oldest(), "it counts no longer"


def test_the_source_with_the_most_unsent_bytes_loses_its_oldest(loop: Loop) -> None:
    reader = loop.answer("203.0.113.1")
    greedy = [loop.answer("203.0.113.2") for _ in range(4)]

    assert loop.dropped == greedy[:1]
    loop.answer("203.0.113.2")
    assert loop.dropped == greedy[:2]
    assert loop.sending._sum_bytes == sum(loop.sending._held_bytes.values())
    assert reader in loop.sending._rests


def test_a_client_that_reads_nothing_is_dropped_in_time(loop: Loop) -> None:
    conn = loop.answer("203.0.113.1")

    loop.sending.end_overdue(time.monotonic() + 29)
    assert loop.dropped == []
    loop.sending.end_overdue(time.monotonic() + 31)
    assert loop.dropped == [conn]
    assert (loop.sending._sum_bytes, loop.sending._rests) == (0, {})


def test_a_client_that_goes_away_is_dropped(loop: Loop) -> None:
    conn = loop.answer("203.0.113.1")
    loop.clients[conn].close()

    loop.turn()
    assert loop.dropped == [conn]
    assert conn.sock.unsent == []


class Ended:
    """Connections of some sources, and those that the crowd ended."""

    def __init__(self, **options: int) -> None:
        self.crowd = Crowd(**options)
        self.ended: list[Connection] = []
        self.sockets: list[socket.socket] = []

    def add(self, address: str, *, is_open: bool = True) -> Connection:
        ours, client = socket.socketpair()
        conn = Connection(Config(), ours, (address, 1), ("127.0.0.1", 2))
        self.sockets += [conn.sock, client]
        self.crowd.add(conn, self.crowd.peer_source(conn), self._end, is_open=is_open)
        return conn

    def _end(self, conn: Connection) -> None:
        conn.close()
        self.ended.append(conn)


@pytest.fixture
def few() -> Iterator[Ended]:
    made = Ended(open_max=2)
    yield made
    for sock in made.sockets:
        sock.close()


def test_open_connections_of_an_ipv6_network_are_bounded_by_each_of_its_blocks(few: Ended) -> None:
    for number in range(3):
        few.add("2001:db8::1")
        assert len(few.ended) == max(0, number - 1)
    for number in range(4):
        few.add(f"2001:db8:0:{number + 1:x}::1")
    assert len(few.ended) == 1 + 2, "a /56 has twice as many"
    for number in range(8):
        few.add(f"2001:db8:0:{number + 1:x}00::1")
    assert len(few.ended) == 3 + 4, "a /48 has four times as many"
    few.add("2001:db8:1::1")
    assert len(few.ended) == 7


def test_the_oldest_of_the_largest_source_makes_room(few: Ended) -> None:
    buyer = few.add("203.0.113.1")
    idle = [few.add("203.0.113.2", is_open=False) for _ in range(5)]
    few.crowd.discard(idle[0])

    assert few.crowd.end_oldest()
    assert few.ended == [idle[1]]
    for _ in range(4):
        assert few.crowd.end_oldest()
    assert set(few.ended) == {buyer, *idle[1:]}
    assert not few.crowd.end_oldest()


def test_a_unix_socket_and_a_proxy_have_no_source() -> None:
    ours, client = socket.socketpair()
    with client:
        conn = Connection(Config(), ours, "", "")
        assert Crowd().forwarded_source(conn, "203.0.113.1") is UNKNOWN
        conn.close()

"""Incomplete requests together hold a limited memory; the request of the source with the most ends first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from api.http.arrival import Verdict
from api.http.connection import Connection
from api.http.crowd import Crowd
from api.http.receiving import Doors, Receiving
from core.errors import DomainError, GatewayBusy
from tests.api.http.loops import ClientLoop

HELD_MAX = 10_000
HEAD = b"POST /v1/payout/batch HTTP/1.1\r\nContent-Length: 9000\r\n\r\n"


class Loop(ClientLoop):
    """A loop that receives, and what became of its connections."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[Connection] = []
        self.refused: list[Connection] = []
        doors = Doors(arrived=self._take, refused=self._refuse, dropped=pytest.fail)
        self.receiving = Receiving(self.poller, doors, Crowd(), held_bytes_max=HELD_MAX)

    def _take(self, conn: Connection, verdict: Verdict) -> None:
        assert verdict is Verdict.WHOLE
        self.arrived.append(conn)

    def _refuse(self, conn: Connection, error: DomainError) -> None:
        assert isinstance(error, GatewayBusy)
        self.refused.append(conn)

    def connect(self, source: str, body_bytes: int, *, head: bytes = HEAD) -> Connection:
        """Begin a request whose body comes up to there."""
        conn = self.connection(source)
        self.clients[conn].send(head)
        self.receiving.begin(conn)
        self.send(conn, body_bytes)
        return conn

    def send(self, conn: Connection, body_bytes: int) -> None:
        """Let this many more bytes of a body arrive."""
        self.clients[conn].send(b"x" * body_bytes)
        self.turn()


@pytest.fixture
def loop() -> Iterator[Loop]:
    started = Loop()
    yield started
    started.close()


def test_the_source_with_the_most_bytes_loses_its_oldest_request(loop: Loop) -> None:
    buyer = loop.connect("203.0.113.1", 3000)
    flood = [loop.connect("203.0.113.2", 2000) for _ in range(4)]

    assert loop.refused == flood[:1]
    loop.send(buyer, 6000)
    assert loop.arrived == [buyer]
    # He holds nearly all by himself now, and is being answered.
    loop.send(flood[-1], 1)
    assert loop.refused == flood


def fill(loop: Loop) -> Connection:
    whole = loop.connect("203.0.113.1", 0)
    loop.send(whole, 9000)
    assert loop.arrived == [whole]
    return whole


@pytest.mark.parametrize(
    ("end", "is_room"), [(lambda loop, conn: loop.receiving.answered(conn), True), (lambda *_: None, False)]
)
def test_a_request_holds_its_bytes_until_it_is_answered(
    loop: Loop, end: Callable[[Loop, Connection], None], *, is_room: bool
) -> None:
    end(loop, fill(loop))

    late = loop.connect("203.0.113.2", 2000)
    assert loop.refused == ([] if is_room else [late])


def test_all_that_was_counted_is_given_back(loop: Loop) -> None:
    for _ in range(20):
        loop.receiving.answered(fill(loop))
        loop.arrived.clear()
        # An expectation is removed from the head: exactly the counted bytes are released.
        conn = loop.connect("203.0.113.1", 100, head=HEAD.replace(b"\r\nC", b"\r\nExpect: 100-continue\r\nC"))
        loop.receiving.end_begun_before(conn.began_at + 1)
        loop.receiving.answered(loop.arrived.pop())

    assert loop.refused == []
    assert loop.receiving._held_bytes == 0

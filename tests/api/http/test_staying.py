"""A thread keeps a connection only while no other request needs it, and answers only complete requests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]

from api.http.arrival import BODY_MAX, Verdict
from api.http.connection import Connection
from api.http.crowd import Crowd
from api.http.staying import STAY_MS, Staying
from api.http.worker import BoundedThreadWorker
from tests.actors.queue.workers import eventually

WHOLE = b"POST /v1/payment HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Peers:
    """A connection and its client."""

    conn: Connection
    client: socket.socket
    is_wanted: bool = False

    def staying(self, threads_max: int = 2) -> Staying:
        return Staying(threads_max=threads_max, is_wanted=lambda: self.is_wanted)

    def left_for_the_loop(self) -> bytes:
        return bytes(self.conn.unreader.take_buffered())


@pytest.fixture
def peers() -> Iterator[Peers]:
    ours, client = socket.socketpair()
    conn = Connection(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    conn.init()
    with client:
        yield Peers(conn, client)
    conn.close()


def test_a_request_that_follows_at_once_is_for_the_same_thread(peers: Peers) -> None:
    peers.client.send(WHOLE)

    assert peers.staying().holds_next(peers.conn)
    assert next(peers.conn.parser).path == "/v1/payment"


def test_a_thread_waits_only_a_moment(peers: Peers) -> None:
    began_at = time.monotonic()

    assert not peers.staying().holds_next(peers.conn)
    assert STAY_MS / 1000 <= time.monotonic() - began_at < 5


@pytest.mark.parametrize(
    "arrived",
    [
        WHOLE[:-1],
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_MAX + 1),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        b"a" * 40_000,
    ],
    ids=["part", "health", "long", "chunked", "expecting", "endless"],
)
def test_incomplete_or_special_requests_are_left_for_the_loop(peers: Peers, arrived: bytes) -> None:
    peers.client.send(arrived)

    assert not peers.staying().holds_next(peers.conn)
    assert peers.left_for_the_loop() == arrived


def test_bytes_behind_the_last_request_are_left_for_the_loop(peers: Peers) -> None:
    peers.conn.unreader.hold(b"GET")
    peers.client.send(WHOLE)

    assert not peers.staying().holds_next(peers.conn)
    assert peers.left_for_the_loop() == b"GET"


@pytest.mark.parametrize("how", [socket.SHUT_WR, None])
def test_a_closed_connection_is_left_for_the_loop(peers: Peers, how: int | None) -> None:
    if how is None:
        # Unread bytes turn the close into a reset.
        peers.conn.sock.send(b"unread")
        peers.client.close()
    else:
        peers.client.shutdown(how)

    assert not peers.staying().holds_next(peers.conn)
    assert peers.left_for_the_loop() == b""


def test_a_readable_socket_without_bytes_is_left_for_the_loop(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    peers.client.send(WHOLE)
    monkeypatch.setattr(peers.conn, "receive", lambda: None)

    assert not peers.staying().holds_next(peers.conn)
    assert peers.left_for_the_loop() == b""


def test_a_thread_that_is_needed_does_not_begin_to_wait(peers: Peers) -> None:
    peers.is_wanted = True
    peers.client.send(WHOLE)

    assert not peers.staying().holds_next(peers.conn)
    assert peers.conn.receive() == WHOLE


def test_no_more_threads_wait_than_may(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.staying.STAY_MS", 60_000)
    staying = peers.staying(threads_max=1)
    ours, client = socket.socketpair()
    other = Connection(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2))
    with other.sock, client, ThreadPoolExecutor(1) as pool:
        client.send(WHOLE)
        waits = pool.submit(staying.holds_next, peers.conn)
        eventually(lambda: bool(staying._staying))

        assert not staying.holds_next(other)
        peers.client.send(WHOLE)
        assert waits.result()
        assert staying.holds_next(other)


# The worker --------------------------------------------------------------------------------------------------------


class Answers:
    """A worker that answers nothing and says what it would have done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *kept: bool | Exception) -> None:
        config = Config()
        config.set("threads", 1)
        self.worker: Any = BoundedThreadWorker(0, 0, [], None, 30, config, None)
        self.worker.tmp.close()
        self.worker.tpool = self.worker._health = ThreadPoolExecutor(1)
        self.kept, self.asked = list(kept), 0
        self.finished: list[bool] = []
        monkeypatch.setattr(self.worker, "handle", self._handle)
        monkeypatch.setattr(self.worker.method_queue, "defer", lambda _finish, _conn, kept: self.finished.append(kept))
        self.worker._staying = self
        self.worker._crowd = Crowd()

    def _handle(self, _conn: object) -> bool:
        answer = self.kept.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def holds_next(self, _conn: object) -> bool:
        self.asked += 1
        return bool(self.kept)

    def answer(self, conn: Connection, verdict: Verdict) -> None:
        self.worker._answer(conn, verdict)
        self.worker.tpool.shutdown()


def test_a_thread_answers_following_requests_until_none_comes(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch, True, True, True)
    answers.answer(peers.conn, Verdict.WHOLE)

    assert (answers.asked, answers.finished, answers.kept) == (3, [True], [])


@pytest.mark.parametrize("last", [False, RuntimeError()])
def test_a_connection_that_ends_later_is_not_kept(peers: Peers, monkeypatch: pytest.MonkeyPatch, last: Any) -> None:
    answers = Answers(monkeypatch, True, last)
    answers.answer(peers.conn, Verdict.WHOLE)

    assert answers.finished == [False]
    assert answers.worker._started_at == {}


def test_health_s_thread_does_not_wait(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch, True, True)
    answers.answer(peers.conn, Verdict.HEALTH)

    assert (answers.asked, answers.finished) == (0, [True])


def test_threads_are_wanted_while_requests_wait_and_when_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Answers(monkeypatch).worker
    assert not worker._is_thread_wanted()

    go_on = threading.Event()
    for _ in range(2):
        worker.tpool.submit(go_on.wait)
    try:
        eventually(worker._is_thread_wanted, limit_s=10)
    finally:
        go_on.set()
    worker.tpool.shutdown()
    worker.tpool = ThreadPoolExecutor(1)
    assert not worker._is_thread_wanted()

    worker.alive = False
    assert worker._is_thread_wanted()

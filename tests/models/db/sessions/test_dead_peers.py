"""A silent PostgreSQL delays each caller for a bounded time, and no caller waits for another's."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from devstack.servers.postgres import Postgres
from models.db import base
from models.db.base import StoreUnavailableError, execute, long_statements, one, transaction
from models.db.sessions import dead_peers, unused
from tests.models.db.collisions import at_once
from tests.peers.silence import Mute, SwallowingProxy, frozen

# The server's limit for a statement here, and how long a process waits beyond it.
TIMEOUT_MS = 300
GRACE_S = 0.7
# Far above that, and far below a machine's own limit for a silent peer.
SOON_S = 20.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[None]:
    monkeypatch.setattr(dead_peers, "GRACE_S", GRACE_S)
    monkeypatch.setattr(dead_peers, "TICK_S", 0.05)
    base.connect(database_url, statement_timeout_ms=TIMEOUT_MS)
    yield
    base.close()
    dead_peers.answering._is_silent = False


def through(proxy: SwallowingProxy, database_url: str) -> None:
    base.connect(
        database_url.replace(f":{urlsplit(database_url).port}/", f":{proxy.port}/"), statement_timeout_ms=TIMEOUT_MS
    )


def test_a_statement_on_a_frozen_server_ends_in_bounded_time(postgres: Postgres) -> None:
    one("SELECT 1")
    assert postgres.pid is not None
    with frozen(postgres.pid):
        began_at = time.monotonic()
        with pytest.raises(StoreUnavailableError):
            one("SELECT 1")
        assert TIMEOUT_MS / 1000 + GRACE_S <= time.monotonic() - began_at < SOON_S

    assert one("SELECT 1") == (1,), "the server went on"


def test_a_commit_on_a_frozen_server_ends_in_bounded_time(postgres: Postgres) -> None:
    assert postgres.pid is not None
    execute("CREATE TABLE things (id integer)")
    ice = contextlib.ExitStack()

    def freeze_at_the_end(pid: int) -> None:
        with transaction():
            execute("INSERT INTO things VALUES (1)")
            ice.enter_context(frozen(pid))

    with ice, pytest.raises(StoreUnavailableError):
        freeze_at_the_end(postgres.pid)

    assert one("SELECT count(*) FROM things") is not None


def test_a_network_that_drops_packets_delays_no_caller_for_long(database_url: str) -> None:
    port = urlsplit(database_url).port
    assert port is not None
    with SwallowingProxy(port) as proxy:
        through(proxy, database_url)
        one("SELECT 1")
        proxy.swallows.set()
        began_at = time.monotonic()

        with pytest.raises(StoreUnavailableError):
            one("SELECT 1")
        assert time.monotonic() - began_at < SOON_S

        proxy.swallows.clear()
        assert one("SELECT 1") == (1,)


def test_a_statement_with_a_longer_limit_is_not_cut(database_url: str) -> None:
    with transaction(), long_statements(30_000):
        assert one("SELECT pg_sleep(2)") == ("",)
    base.connect(database_url, statement_timeout_ms=0)
    assert one("SELECT pg_sleep(2)") == ("",)


def test_a_longer_limit_ends_with_its_transaction() -> None:
    usual = base.db.connection().patience_s
    with transaction(), long_statements(30_000):
        assert base.db.connection().patience_s == 30 + GRACE_S

    assert base.db.connection().patience_s == usual == TIMEOUT_MS / 1000 + GRACE_S


def test_an_idle_connection_is_never_cut() -> None:
    one("SELECT 1")
    backend = one("SELECT pg_backend_pid()")
    time.sleep(TIMEOUT_MS / 1000 + GRACE_S + 0.5)

    assert one("SELECT pg_backend_pid()") == backend


def test_threads_connect_to_a_silent_server_concurrently_and_then_one_at_a_time() -> None:
    with Mute() as mute:
        base.connect(f"postgresql://nobody@127.0.0.1:{mute.port}/none")

        def attempt(_: int) -> float:
            began_at = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                base.run("SELECT 1")
            return time.monotonic() - began_at

        began_at = time.monotonic()
        first = in_threads(6, attempt)
        # One after the other they would have taken six times as long.
        assert time.monotonic() - began_at < 4 * base.CONNECT_TIMEOUT_S
        assert min(first) > 1

        second = sorted(in_threads(6, attempt))
        # One thread checks whether the server answers again, and the others do not wait for it.
        assert second[0] < 1
        assert second[4] < 1
        assert second[5] > 1


def in_threads(count: int, attempt: Callable[[int], float]) -> list[float]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(attempt, range(count)))


def test_a_server_that_refuses_connections_is_not_counted_as_silent(database_url: str) -> None:
    base.connect(database_url.replace("sluice:", "stranger:"))
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            one("SELECT 1")
    assert not dead_peers.answering._is_silent

    base.connect(database_url)
    assert at_once(4, lambda _: one("SELECT 1")) == [(1,)] * 4


def test_both_sides_notice_a_vanished_host_within_seconds() -> None:
    for name, value in dead_peers.SERVER_OPTIONS.items():
        shown = one("SELECT setting::int FROM pg_settings WHERE name = %s", (name,))
        assert shown == (value,), name
    with socket.fromfd(base.db.connection().fileno(), socket.AF_INET, socket.SOCK_STREAM) as ours:
        by_name = {
            name: ours.getsockopt(level, option)
            for name, level, option in (
                ("keepalives", socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                ("keepalives_idle", socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                ("keepalives_interval", socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                ("keepalives_count", socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
                ("tcp_user_timeout", socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
            )
        }
    assert by_name == dead_peers.CLIENT_OPTIONS
    idle, interval, count = (
        dead_peers.SERVER_OPTIONS[f"tcp_keepalives_{name}"] for name in ("idle", "interval", "count")
    )
    assert idle + interval * count <= 15


def test_a_socket_with_the_number_of_a_closed_one_is_left_open() -> None:
    one("SELECT 1")
    connection = base.db.connection()
    assert connection.is_silent(time.monotonic()) is False
    descriptor, inode = connection.identity
    connection.identity = (descriptor, inode + 1)

    assert connection.cut() is False
    assert one("SELECT 1") == (1,)


def test_connections_that_a_burst_left_behind_are_closed_without_a_later_use(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3)

    def speak(_: int) -> None:
        one("SELECT 1")
        together.wait(SOON_S)
        base.release()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(speak, range(3)))
    assert len(base._unused) == 3

    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)

    until = time.monotonic() + SOON_S
    while len(base._unused) > 1:
        assert time.monotonic() < until, "they stay open"
        time.sleep(0.05)


def test_a_connection_that_is_dropped_during_a_look_does_not_end_the_watch() -> None:
    """A set of weak references may change while it is read: without the watch, waits would never end again."""
    is_cut = threading.Event()

    class Overdue:
        asked_at: float | None = 0.0

        def is_silent(self, _now: float) -> bool:
            return True

        def cut(self) -> bool:
            self.asked_at = None
            is_cut.set()
            return False

    class Changing(set[Any]):
        looks = 0

        def __iter__(self) -> Iterator[Any]:
            self.looks += 1
            if self.looks == 1:
                raise RuntimeError("Set changed size during iteration")
            return super().__iter__()

    watch = dead_peers._Watch()
    watch._connections = Changing()  # type: ignore[assignment]
    watch.add(Overdue())  # type: ignore[arg-type]
    assert is_cut.wait(SOON_S)

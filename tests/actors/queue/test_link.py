from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from actors.queue import link as queue_link
from actors.queue.link import LinkDownError, RedisLink
from core.settings.settings import load_settings
from devstack.servers.valkey import Valkey
from models.db.sessions import unused
from tests.actors.queue.workers import eventually
from tests.core.settings.test_settings import DEVELOPMENT
from tests.peers.smtp_server import certify


@pytest.fixture
def link(redis_url: str) -> Iterator[RedisLink]:
    opened = RedisLink(redis_url, client_name="tested", reply_timeout_s=1.0)
    yield opened
    opened.close()


def test_commands_are_answered_in_order(link: RedisLink) -> None:
    assert link.run([("SET", "a", 1), ("INCR", "a"), ("GET", "a")]) == [b"OK", 2, b"2"]


def test_a_wait_may_be_longer_than_the_reply_timeout(link: RedisLink) -> None:
    started = time.monotonic()

    assert link.run([("BLPOP", "nothing", 1.5)], wait_s=1.5) == [None]
    assert time.monotonic() - started >= 1.5


def assert_given_up_while_redis_hangs(valkey: Valkey, link: RedisLink) -> None:
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(LinkDownError):
            link.run([("PING",)])
        assert time.monotonic() - started < 30
    finally:
        os.kill(valkey.pid, signal.SIGCONT)


def test_a_wait_ends_even_if_redis_hangs(valkey: Valkey, link: RedisLink) -> None:
    link.run([("PING",)])
    assert_given_up_while_redis_hangs(valkey, link)


def test_a_long_wait_does_not_lengthen_later_ones(valkey: Valkey, link: RedisLink) -> None:
    link.run([("RPUSH", "something", "x"), ("BLPOP", "something", 60)], wait_s=60)
    assert_given_up_while_redis_hangs(valkey, link)


def closing_tls(peer: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    return peer if context is None else context.wrap_socket(peer, server_side=True)


@contextlib.contextmanager
def falling_silent(folder: Path, *, is_tls: bool) -> Iterator[RedisLink]:
    """Run a server that answers BLPOP late and all else at once, and stops reading at a SET.

    Yields a link to it.
    """
    context = certify(folder)[0] if is_tls else None
    is_over = threading.Event()

    def answer() -> None:
        peer, _ = server.accept()
        # A client that does not trust the certificate hangs up.
        with contextlib.suppress(ssl.SSLError), closing_tls(peer, context) as talking:
            while (received := talking.recv(4096)) and b"\r\nSET\r\n" not in received:
                is_over.wait(1.0 if b"BLPOP" in received else 0.0)
                talking.sendall(b"+OK\r\n" * received.count(b"*"))
            is_over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = threading.Thread(target=answer)
        silent.start()
        place = f"127.0.0.1:{server.getsockname()[1]}/0"
        url = f"rediss://{place}?ssl_ca_certs={folder}/server.pem" if is_tls else f"redis://{place}"
        link = RedisLink(url, reply_timeout_s=0.5)
        link._sample_at = float("inf")
        try:
            yield link
        finally:
            link.close()
            is_over.set()
            silent.join()


def greeting(folder: Path, tls: str) -> str:
    """Return what a link hears from a server with the certificate of its own authority."""
    with falling_silent(folder, is_tls=True) as link:
        port = link._make_connection().port
        env = DEVELOPMENT | {"REDIS_URL": f"rediss://127.0.0.1:{port}/0", "REDIS_TLS": tls}
        checked = RedisLink(load_settings(env).redis_url, reply_timeout_s=0.5)
        checked._sample_at = float("inf")
        try:
            return str(checked.run([("PING",)]))
        except LinkDownError as error:
            return str(error)
        finally:
            checked.close()


def test_a_certificate_of_no_public_authority_needs_its_file_or_no_check(tmp_path: Path) -> None:
    assert "certificate verify failed" in greeting(tmp_path, "verify")
    assert greeting(tmp_path, f"ca:{tmp_path}/server.pem") == greeting(tmp_path, "unverified") == "[b'OK']"


@pytest.mark.parametrize("size", [1, 50_000_000], ids=["read", "write"])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_a_silent_server_is_not_waited_for(tmp_path: Path, size: int, *, is_tls: bool) -> None:
    with falling_silent(tmp_path, is_tls=is_tls) as link:
        assert link.run([("PING",), ("BLPOP", "a", 1)], wait_s=2) == [b"OK", b"OK"]
        started = time.monotonic()
        with pytest.raises(LinkDownError):
            link.run([("SET", "a", b"x" * size)])
        assert time.monotonic() - started < 30


def test_a_refusal_raises_without_waiting_for_later_answers(link: RedisLink) -> None:
    link.run([("SET", "text", "x")])
    started = time.monotonic()

    with pytest.raises(LinkDownError, match="WRONGTYPE"):
        link.run([("RPUSH", "text", "y"), ("BLPOP", "nothing", 60)], wait_s=60)
    assert time.monotonic() - started < 30


def test_commands_after_a_refusal_get_their_own_answers(link: RedisLink) -> None:
    link.run([("SET", "text", "x")])
    with pytest.raises(LinkDownError):
        link.run([("RPUSH", "text", "y"), ("GET", "text")])

    assert link.run([("ECHO", "mine")]) == [b"mine"]


def test_an_interrupted_read_leaves_no_answer_to_the_next(link: RedisLink, monkeypatch: pytest.MonkeyPatch) -> None:
    class ShutdownSignal(BaseException):
        pass

    def interrupted(*_: object) -> None:
        raise ShutdownSignal

    with monkeypatch.context() as patched:
        patched.setattr(link, "_read", interrupted)
        with pytest.raises(ShutdownSignal):
            link.run([("ECHO", "old")])

    assert link.run([("ECHO", "new")]) == [b"new"]


def test_a_script_is_loaded_again_after_redis_forgot_it(link: RedisLink, redis_url: str) -> None:
    script = link.script(b"return ARGV[1]")
    call = ("EVALSHA", script, 0, "again")
    assert link.run([call]) == [b"again"]
    with redis.Redis.from_url(redis_url) as client:
        client.script_flush()

    assert link.run([("ECHO", "first"), call, call, ("ECHO", "last")]) == [b"first", b"again", b"again", b"last"]


def client_id(link: RedisLink) -> int:
    return int(link.run([("CLIENT", "ID")])[0])


def crowd(link: RedisLink, redis_url: str, *, threads: int) -> set[int]:
    """Make threads wait in Redis at the same time; return the ids of their connections."""
    ids: list[int] = []

    def wait() -> None:
        ids.append(link.run([("BLPOP", "gate", 60), ("CLIENT", "ID")], wait_s=60)[1])

    waiting = [threading.Thread(target=wait) for _ in range(threads)]
    for thread in waiting:
        thread.start()
    with redis.Redis.from_url(redis_url) as other:
        eventually(lambda: other.info("clients")["blocked_clients"] == threads)
        other.rpush("gate", *range(threads))
    for thread in waiting:
        thread.join()
    return set(ids)


def open_named(redis_url: str, name: str) -> int:
    with redis.Redis.from_url(redis_url, decode_responses=True) as other:
        return [row["name"] for row in other.client_list()].count(name)


def test_concurrent_threads_have_their_own_connections(link: RedisLink, redis_url: str) -> None:
    assert len(crowd(link, redis_url, threads=3)) == 3


def test_successive_threads_share_a_connection(link: RedisLink) -> None:
    ids = {client_id(link)}
    other = threading.Thread(target=lambda: ids.add(client_id(link)))
    other.start()
    other.join()

    assert ids == {client_id(link)}


def test_unused_connections_of_a_crowd_are_closed_and_the_used_one_is_kept(
    link: RedisLink, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(link, redis_url, threads=3)
    mine = client_id(link)
    assert open_named(redis_url, "tested") == 3

    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)
    link._unused._look_at = 0.0

    assert client_id(link) == mine
    eventually(lambda: open_named(redis_url, "tested") == 1)


def test_connections_that_a_crowd_left_are_closed_without_a_later_use(
    link: RedisLink, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the thread that looks after the connections to PostgreSQL."""
    crowd(link, redis_url, threads=3)
    monkeypatch.setattr(unused, "IDLE_MAX_S", 0.0)

    unused.close_idle()

    eventually(lambda: open_named(redis_url, "tested") == 1)


def test_close_ends_all_unused_connections(link: RedisLink, redis_url: str) -> None:
    crowd(link, redis_url, threads=3)

    link.close()

    eventually(lambda: open_named(redis_url, "tested") == 0)


def test_any_number_of_connections_may_be_made_in_succession(link: RedisLink) -> None:
    for _ in range(120):
        link.run([("PING",)])
        link.close()


def test_a_forked_child_opens_its_own_connection(link: RedisLink) -> None:
    mine = client_id(link)

    link._unused.forget()

    assert client_id(link) != mine


def test_a_connection_closed_while_idle_is_replaced_before_use(
    valkey: Valkey, link: RedisLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_link, "IDLE_CHECK_S", 0.0)
    link.run([("PING",)])
    valkey.stop()
    valkey.start()

    assert link.run([("PING",)]) == [b"PONG"]


def test_a_command_is_not_repeated_after_a_cut_connection(valkey: Valkey, link: RedisLink) -> None:
    link.run([("PING",)])
    valkey.stop()
    valkey.start()

    with pytest.raises(LinkDownError):
        link.run([("PING",)])
    assert link.run([("PING",)]) == [b"PONG"]


def test_a_restart_fails_one_exchange_however_many_connections_it_ended(
    valkey: Valkey, link: RedisLink, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_link, "IDLE_CHECK_S", 3_600.0)
    crowd(link, redis_url, threads=3)
    valkey.stop()
    valkey.start()

    with pytest.raises(LinkDownError):
        link.run([("PING",)])
    assert link.run([("PING",)]) == [b"PONG"]


def test_url_parameters_set_no_retry_and_no_timeout(redis_url: str) -> None:
    link = RedisLink(f"{redis_url}?socket_timeout=0.01&retry_on_timeout=1&decode_responses=1")

    assert link.run([("BLPOP", "nothing", 0.2)], wait_s=0.2) == [None]
    assert link.run([("ECHO", "bytes")]) == [b"bytes"]
    link.close()


def test_a_loading_server_counts_as_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                while peer.recv(4096):
                    peer.sendall(b"-LOADING Redis is loading the dataset in memory\r\n" * 4)

        loading = threading.Thread(target=answer)
        loading.start()
        link = RedisLink(f"redis://127.0.0.1:{port}/0", reply_timeout_s=1.0)
        with pytest.raises(LinkDownError):
            link.run([("PING",)])
        link.close()
        loading.join()


def test_an_absent_server_counts_as_away() -> None:
    with pytest.raises(LinkDownError):
        RedisLink("redis://127.0.0.1:1/0").run([("PING",)])


def test_the_error_of_an_absent_server_hides_the_password() -> None:
    with pytest.raises(LinkDownError) as caught:
        RedisLink("redis://user:hidden-word@127.0.0.1:1/0").run([("PING",)])

    assert "hidden-word" not in str(caught.value)


def test_the_link_uses_the_clock_of_redis(link: RedisLink) -> None:
    link._clock_offset_s = 3600.0

    seconds, microseconds = link.run([("TIME",)])[0]

    assert abs(link.now_ms() - (int(seconds) * 1000 + int(microseconds) // 1000)) < 200

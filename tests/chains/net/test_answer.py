"""An exchange with a node ends at its deadline, whichever part of the answer drips."""

import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from chains.base import ProviderError
from chains.net import answer, names
from chains.net.json_rpc import JsonRpc

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
RESULT = b'{"jsonrpc": "2.0", "id": 1, "result": "0x1"}'


@contextmanager
def server(at_once: bytes, drips: bytes = b"", *, every_s: float = 0.05) -> Iterator[str]:
    """Answer one request with bytes at once, then with others one by one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError), listener.accept()[0] as client:
                read_request(client)
                client.sendall(at_once)
                for byte in drips:
                    time.sleep(every_s)
                    client.sendall(bytes([byte]))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v3/secret-key"
        thread.join()


def read_request(client: socket.socket) -> None:
    """Read a whole request: a connection that is closed before loses what was sent on it."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += client.recv(65536)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(re.findall(rb"(?i)content-length: *([0-9]+)", head)[0])
    while len(body) < length:
        body += client.recv(65536)


def ask(url: str) -> str:
    return JsonRpc(url, timeout_s=0.4).call("eth_method", [], str)


@pytest.mark.parametrize(
    ("at_once", "drips"),
    [
        (b"", b"HTTP/1.1 200 " + b"O" * 80),
        (HEAD, b"X-Padding: " + b"x" * 80),
        (CHUNKED, b"1;" + b"x" * 80),
        (HEAD + b"Content-Length: 80\r\n\r\n", b" " * 80),
    ],
    ids=["status line", "header", "chunk size", "body"],
)
def test_an_answer_that_drips_ends_at_the_deadline(at_once: bytes, drips: bytes) -> None:
    with server(at_once, drips) as url:
        began = time.monotonic()
        with pytest.raises(ProviderError, match="Timeout"):
            ask(url)
        assert time.monotonic() - began < 3.5


def test_chunks_are_joined() -> None:
    with server(CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(RESULT), RESULT)) as url:
        assert ask(url) == "0x1"


@pytest.mark.parametrize("line", [b"X-Padding: %b\r\n" % (b"x" * 8000), b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_a_head_without_end_is_refused(line: bytes) -> None:
    many = line * 20_000 if line.startswith(b"HTTP") else HEAD + line * 20
    body = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(RESULT), RESULT)
    with server(many + (body if line.startswith(b"HTTP") else body[len(HEAD) :])) as url, pytest.raises(ProviderError):
        ask(url)


def test_a_malformed_head_does_not_bring_the_key_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    head = HEAD + b"Content-Length: %d\r\nno colon here\r\n\r\n" % len(RESULT)
    with caplog.at_level(logging.WARNING), server(head + RESULT) as url, suppress(ProviderError):
        ask(url)
    assert "secret-key" not in caplog.text


def test_a_name_with_many_silent_addresses_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full backlog accepts no more connections and refuses none."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        monkeypatch.setattr(answer, "CONNECT_TIMEOUT_S", 0.4)
        one = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_how: [one] * 8)
        began = time.monotonic()
        with pytest.raises(ProviderError):
            JsonRpc("http://silent.example/secret-key", timeout_s=3).call("eth_method", [], str)
        assert time.monotonic() - began < 10


# Names ------------------------------------------------------------------------------------------------------


class Resolver:
    """A resolver that answers for names once a test lets it; literal addresses it reads at once."""

    def __init__(self, port: int) -> None:
        self.port, self.asked, self.lets = port, list[str](), threading.Event()
        self.failure: Exception | None = None
        self.has_answered = False

    def __call__(self, host: str, port: int, *_: object, flags: int = 0, **_how: object) -> object:
        del port
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        self.asked.append(host)
        self.lets.wait(10)
        self.has_answered = True
        if self.failure is not None:
            raise self.failure
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", self.port))]

    def end(self) -> None:
        self.lets.set()
        for thread in threading.enumerate():
            if thread.name == "lookup":
                thread.join(10)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Resolver(listener.getsockname()[1])
        monkeypatch.setattr(socket, "getaddrinfo", made)
        yield made
        made.end()
        names._lookups.forget()


def find(*, within_s: float = 10.0) -> int:
    return len(names.addresses_of("node.example", 80, within_s=within_s))


def test_a_resolver_that_hangs_ends_at_the_deadline_of_the_exchange(resolver: Resolver) -> None:
    with pytest.raises(ProviderError):
        JsonRpc("http://node.example/secret-key", timeout_s=0.1).call("eth_method", [], str)
    assert resolver.asked
    assert not resolver.has_answered


def test_a_name_is_looked_up_by_one_thread_however_many_wait(resolver: Resolver) -> None:
    for _ in range(3):
        with pytest.raises(TimeoutError):
            find(within_s=0.0)
    assert resolver.asked == ["node.example"]


def test_a_late_answer_serves_the_next_connection_and_no_other(resolver: Resolver) -> None:
    with pytest.raises(TimeoutError):
        find(within_s=0.0)
    resolver.end()
    assert find(within_s=0.0) == 1
    assert resolver.asked == ["node.example"]
    assert find() == 1
    assert len(resolver.asked) == 2
    assert names._lookups._known == {}


def test_a_late_answer_that_is_old_or_a_failure_is_not_used(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TimeoutError):
        find(within_s=0.0)
    resolver.end()
    monkeypatch.setattr(names, "KEPT_S", -1.0)
    assert find() == 1
    assert len(resolver.asked) == 2
    for failure in (socket.gaierror(socket.EAI_AGAIN, "try again"), UnicodeError("label too long")):
        resolver.failure = failure
        with pytest.raises(OSError, match=r"again|invalid"):
            find()
    resolver.failure = None
    assert find() == 1


def test_a_literal_address_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _thread: pytest.fail("a thread"))
    for host in ("127.0.0.1", "::1"):
        assert names.addresses_of(host, 80, within_s=0.0)


def test_a_lookup_that_gets_no_thread_fails(resolver: Resolver, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="no thread"):
        find()
    assert names._lookups._known == {}
    assert resolver.asked == []

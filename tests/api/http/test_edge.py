"""Clients that send slowly, or nothing, or stay: they cost the gateway no thread, and its loop no wait."""

from __future__ import annotations

import contextlib
import errno
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from actors.queue.messages import Answer, CallStamps, answer_key
from api.http.sending import UNSENT_BYTES_MAX
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.servers.postgres import Postgres
from devstack.servers.valkey import Valkey
from devstack.supervise.ports import free_port
from tests.actors.queue.workers import eventually
from tests.api.test_server import THREADS, Server, code_of, serving, split, start
from tests.peers.silence import frozen

OPEN_MAX = 66
CONNECTIONS_MAX = 300
SALE_S = 1.0
# Longer than any test, so that no time limit decides; and the time for quick answers on a busy machine.
REQUEST_S = 40.0
SOON_S = 10.0
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server(module_database: str, valkey: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    more = {"REDIS_NAMESPACE": "edge", "OPEN_REQUESTS_MAX": str(OPEN_MAX), "TRUSTED_PROXIES": "127.0.0.9"}
    folder = tmp_path_factory.mktemp("gunicorn")
    with serving(
        module_database, valkey, folder, request_s=REQUEST_S, end_s=60, connections_max=CONNECTIONS_MAX, **more
    ) as served:
        yield served


@pytest.fixture
def clients(server: Server) -> Iterator[Clients]:
    with contextlib.ExitStack() as stack:
        yield Clients(server, stack)


class Clients:
    """Connections that end with the test."""

    def __init__(self, server: Server, stack: contextlib.ExitStack) -> None:
        self._server, self._stack = server, stack

    def send(self, *parts: bytes, source: str = "127.0.0.1", receive_bytes: int | None = None) -> socket.socket:
        client = self._stack.enter_context(socket.socket())
        client.settimeout(60)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.bind((source, 0))
        client.connect(("127.0.0.1", self._server.port))
        for part in parts:
            client.sendall(part)
        return client


def assert_serves(server: Server) -> None:
    """Check that health and a signed read are answered soon."""
    began_at = time.monotonic()
    for _ in range(3):
        assert split(server.talk(HEALTH))[0] == 200
        assert code_of(server.talk(server.signed())) == (404, "payment.not_found")
    assert time.monotonic() - began_at < SOON_S


@pytest.fixture
def worker(valkey: Valkey) -> Iterator[None]:
    """Answer the calls that create payments, as a worker does, and take them off the queue."""
    stamps, ended = CallStamps(DEVELOPMENT_SECRET_KEYS), threading.Event()

    def answer() -> None:
        with redis.Redis.from_url(valkey.url) as queue:
            while not ended.wait(0.005):
                for call_id in queue.hkeys("edge:invoices.msgs"):
                    queue.hdel("edge:invoices.msgs", call_id)
                    done = Answer(kind="done", body=b'{"uuid":"sold"}')
                    packed = stamps.pack("invoices", "create_invoice", uuid.UUID(call_id.decode()), done)
                    queue.lpush(answer_key("edge", call_id.decode()), packed)

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    ended.set()
    thread.join()


def sale_s(server: Server) -> float:
    """Return how long the gateway takes to sell: the best of three, for the machine is shared."""
    took_s = []
    for number in range(3):
        order = b'{"amount":"1","currency":"USD","order_id":"%d"}' % number
        began_at = time.monotonic()
        status, _, body = split(server.talk(server.signed(b"/v1/payment", order)))
        took_s.append(time.monotonic() - began_at)
        assert (status, body["result"]) == (200, {"uuid": "sold"})
    return min(took_s)


@pytest.mark.usefixtures("worker")
def test_forty_clients_that_read_no_answer_delay_no_sale(server: Server, clients: Clients) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"
    for number in range(40):
        clients.send(request * (19_000 // len(request)), source=f"127.0.0.{2 + number % 5}", receive_bytes=4096)
    time.sleep(0.5)

    assert sale_s(server) <= SALE_S


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("part", [b"GET /healthz HTTP/1.1\r\nHo", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_twenty_sources_on_all_connections_keep_no_client_out(server: Server, clients: Clients, part: bytes) -> None:
    slow = clients.send(HEALTH[:-1], source="127.0.0.50")
    for number in range(CONNECTIONS_MAX + 60):
        clients.send(part, source=f"127.0.0.{100 + number % 20}")

    assert sale_s(server) <= SALE_S
    # Who has only one connection keeps it, however long ago it began.
    slow.sendall(HEALTH[-1:])
    assert read_health(slow).startswith(b"HTTP/1.1 200")


def test_unread_answers_are_counted_by_source(server: Server, clients: Clients) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"
    answer = server.talk(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    # Otherwise the limit on bytes would end some before their number does.
    assert (OPEN_MAX + 1) * len(answer) < UNSENT_BYTES_MAX
    greedy = [clients.send(request * 30, source="127.0.0.60", receive_bytes=4096) for _ in range(OPEN_MAX + 5)]

    assert_serves(server)
    # Reading the error takes it away.
    was_reset = [False] * len(greedy)
    eventually(lambda: sum(note_resets(greedy, was_reset)) == 5)


def test_a_large_answer_reaches_a_slow_reader_whole_and_the_connection_goes_on(
    server: Server, clients: Clients
) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"
    whole = server.talk(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    body = whole.partition(b"\r\n\r\n")[2]
    client = clients.send(request * 20 + HEALTH, receive_bytes=4096)
    time.sleep(0.3)

    answers = b"".join(iter(lambda: client.recv(65536), b""))

    assert answers.count(body) == 20
    assert answers.endswith(b'{"status":"ok"}')


def note_resets(connections: list[socket.socket], was_reset: list[bool]) -> list[bool]:
    for at, client in enumerate(connections):
        was_reset[at] |= client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
    return was_reset


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_sixty_four_half_open_requests_delay_no_other(server: Server, clients: Clients) -> None:
    for number in range(64):
        clients.send((b"GET /healthz HTTP/1.1\r\nHo", b"", server.signed()[:-1], b"G")[number % 4])

    assert_serves(server)


def test_clients_that_do_not_close_delay_no_other(server: Server, clients: Clients) -> None:
    began_at = time.monotonic()
    for _ in range(20):
        assert read_health(clients.send(HEALTH)).startswith(b"HTTP/1.1 200")

    assert time.monotonic() - began_at < SOON_S
    assert_serves(server)


def test_a_request_that_only_looks_whole_holds_no_thread(server: Server, clients: Clients) -> None:
    # The loop reads no length as long as this; gunicorn reads 900, and would wait for those bytes.
    head = b"GET /v1/currencies HTTP/1.1\r\nHost: x\r\nContent-Length: %s900\r\n\r\n" % (b"0" * 20)
    for number in range(8 * THREADS):
        clients.send((b"\r\n\r\n", head)[number % 2])

    assert_serves(server)


def test_an_unannounced_body_is_not_read_as_the_next_request(clients: Clients) -> None:
    padded = b"%s%d" % (b"0" * 20, len(HEALTH))
    client = clients.send(b"GET /v1/currencies HTTP/1.1\r\nHost: x\r\nContent-Length: " + padded + b"\r\n\r\n")
    answers = client.recv(1)
    with contextlib.suppress(OSError):
        client.sendall(HEALTH)
        answers += b"".join(iter(lambda: client.recv(65536), b""))

    assert answers.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("announced", [b"Content-Length: 900000", b"Transfer-Encoding: chunked"])
def test_long_bodies_that_stall_hold_few_threads(server: Server, clients: Clients, announced: bytes) -> None:
    head = b"POST /v1/payment/info HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + announced + b"\r\n\r\n"
    for _ in range(4 * THREADS):
        clients.send(head, b"7")

    assert_serves(server)


@pytest.mark.parametrize("announced", [b"Content-Length: 900000", b"Transfer-Encoding: chunked"])
def test_long_bodies_that_stall_delay_no_other_s_long_body(server: Server, clients: Clients, announced: bytes) -> None:
    head = b"POST /v1/payout/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + announced + b"\r\n\r\n"
    for _ in range(4 * THREADS):
        clients.send(head, b"7", source="127.0.0.2")
    began_at = time.monotonic()

    answer = server.talk(server.signed(body=b'{"order_id":"nobody"}' + b" " * 200_000))

    assert code_of(answer) == (404, "payment.not_found")
    assert time.monotonic() - began_at < SOON_S


@pytest.mark.parametrize("begun", [b"", b"5", b"5\r\n{", b"5\r\n{    \r\n", b"0\r\n"])
def test_chunked_bodies_that_stall_from_many_sources_delay_no_other_s_refusal(
    server: Server, clients: Clients, begun: bytes
) -> None:
    """Such a body is refused whatever follows: no thread waits for its end."""
    head = b"POST /v1/payment/info HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    stalled = [clients.send(head + begun, source=f"127.0.1.{number + 1}") for number in range(4 * THREADS)]
    began_at = time.monotonic()

    answer = server.talk(head + b"0\r\n\r\n" + HEALTH)

    assert (code_of(answer), answer.count(b"HTTP/1.1 ")) == ((411, "request.length_required"), 1)
    assert time.monotonic() - began_at < SOON_S / 2
    for client in stalled:
        text = b"".join(iter(lambda client=client: client.recv(65536), b""))  # type: ignore[misc]
        assert (text.count(b"HTTP/1.1 "), split(text)[1]["connection"]) == (1, "close")


@pytest.mark.parametrize(
    ("announced", "code"),
    [
        (b"Content-Length: 1048577", (413, "request.too_large")),
        (b"Transfer-Encoding: chunked", (411, "request.length_required")),
    ],
    ids=["long", "chunked"],
)
@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"], ids=["", "expecting"])
@pytest.mark.parametrize("body", [b"", b"0\r\n\r\n", b"5\r\n0\r\n\r\n"], ids=["none", "last chunk", "seeming end"])
@pytest.mark.parametrize("pause_s", [0, 0.2], ids=["with its body", "before its body"])
def test_a_refused_body_is_the_last_of_its_connection(
    server: Server, announced: bytes, code: tuple[int, str], expects: bytes, body: bytes, pause_s: float
) -> None:
    """A proxy before us may see the end of such a body elsewhere: the bytes behind it must not become a request."""
    head = b"POST /v1/payment/info HTTP/1.1\r\nHost: x\r\n" + announced + b"\r\n" + expects + b"\r\n"

    parts = (head, body + HEALTH) if pause_s else (head + body + HEALTH,)
    answer = server.talk(*parts, pause_s=pause_s)

    assert (code_of(answer), answer.count(b"HTTP/1.1 ")) == (code, 1)
    assert split(answer)[1]["connection"] == "close"


def test_open_requests_are_bounded_by_source_and_the_oldest_end(server: Server, clients: Clients) -> None:
    stranger = clients.send(b"GET", source="127.0.0.2")
    mine = [clients.send(b"GET") for _ in range(OPEN_MAX + 5)]

    eventually(lambda: [is_open(client) for client in mine] == [False] * 5 + [True] * OPEN_MAX)
    assert is_open(stranger)
    assert_serves(server)


def test_an_idle_connection_is_no_open_request(server: Server, clients: Clients) -> None:
    kept = [clients.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(OPEN_MAX + 5)]
    for client in kept:
        assert read_health(client).startswith(b"HTTP/1.1 200")

    for client in kept:
        client.sendall(HEALTH)
        assert read_health(client).startswith(b"HTTP/1.1 200")
    assert server.process.poll() is None


def read_health(client: socket.socket) -> bytes:
    answer = b""
    while not answer.endswith(b"}"):
        chunk = client.recv(65536)
        assert chunk
        answer += chunk
    return answer


def test_open_requests_behind_a_trusted_proxy_count_for_its_client(server: Server, clients: Clients) -> None:
    def half(source: str) -> bytes:
        return server.signed(extra=b"X-Forwarded-For: %s\r\n" % source.encode())[:-1]

    heads = [clients.send(b"GET", source="127.0.0.9") for _ in range(OPEN_MAX + 5)]
    buyer = clients.send(half("203.0.113.7"), source="127.0.0.9")
    flood = [clients.send(half("203.0.113.8"), source="127.0.0.9") for _ in range(OPEN_MAX + 5)]

    eventually(lambda: [is_open(client) for client in flood] == [False] * 5 + [True] * OPEN_MAX)
    assert is_open(buyer)
    # Their source is unknown before the head has come, and the proxy itself has no limit.
    assert all(is_open(client) for client in heads)


def test_health_answers_while_all_threads_wait(server: Server, postgres: Postgres, valkey: Valkey) -> None:
    assert postgres.pid is not None
    order = b'{"amount":"1","currency":"USD"}'
    with redis.Redis.from_url(valkey.url) as queue, ThreadPoolExecutor(2 * THREADS) as pool:
        calls = [pool.submit(server.talk, server.signed(b"/v1/payment", order)) for _ in range(2)]
        eventually(lambda: queue.hlen("edge:invoices.msgs") == 2)
        # The key is read again, by threads that wait for PostgreSQL.
        time.sleep(1.1)
        with frozen(postgres.pid):
            began_at = time.monotonic()
            reads = [pool.submit(server.talk, server.signed()) for _ in range(THREADS + 2)]
            time.sleep(1.0)
            for _ in range(5):
                asked_at = time.monotonic()
                assert split(server.talk(HEALTH))[0] == 200
                assert time.monotonic() - asked_at < 2.0
            answers = [code_of(read.result()) for read in reads]
            # Its statements end two seconds after they began, and four later they are cut.
            assert time.monotonic() - began_at < 30
        assert answers == [(503, "gateway.busy")] * len(reads)
        for call_id in queue.hkeys("edge:invoices.msgs"):
            queue.lpush(answer_key("edge", call_id.decode()), b"no answer")
        assert [code_of(call.result()) for call in calls] == [(503, "gateway.busy")] * 2

    eventually(lambda: code_of(server.talk(server.signed())) == (404, "payment.not_found"))


def test_a_head_without_an_end_is_refused_at_once(server: Server) -> None:
    began_at = time.monotonic()

    assert code_of(server.talk(b"GET / HTTP/1.1\r\nA: " + b"b" * 40_000)) == (400, "request.malformed")
    assert time.monotonic() - began_at < SOON_S


def test_requests_that_come_one_behind_the_other_are_answered_when_each_is_whole(
    server: Server, clients: Clients
) -> None:
    first, second, third = (server.signed(close=False) for _ in range(3))
    client = clients.send(first + second + third[:-3])

    answers = b""
    while answers.count(b"payment.not_found") < 2:
        answers += client.recv(65536)
    time.sleep(0.3)
    assert is_open(client)
    client.setblocking(True)
    client.sendall(third[-3:])
    while answers.count(b"payment.not_found") < 3:
        answers += client.recv(65536)
    assert answers.count(b"HTTP/1.1 404") == 3


@pytest.mark.parametrize("size", [0, 100_000])
def test_an_expectation_is_answered_once(server: Server, size: int) -> None:
    request = server.signed(body=b'{"order_id":"nobody"}' + b" " * size, extra=b"Expect: 100-continue\r\n")
    head, _, body = request.partition(b"\r\n\r\n")

    answer = server.talk(head + b"\r\n\r\n", body[:10], body[10:], pause_s=0.2)

    assert answer.count(b"100 Continue") == 1
    assert code_of(answer.split(b"\r\n\r\n", 1)[1]) == (404, "payment.not_found")


def test_a_client_that_ends_within_a_body_is_refused_at_once(server: Server, clients: Clients) -> None:
    client = clients.send(server.signed()[:-5])
    client.shutdown(socket.SHUT_WR)
    began_at = time.monotonic()

    assert code_of(b"".join(iter(lambda: client.recv(65536), b""))) == (400, "auth.body_read")
    assert time.monotonic() - began_at < SOON_S


def test_an_ending_worker_answers_requests_that_are_being_sent(
    module_database: str, valkey: Valkey, tmp_path: Path
) -> None:
    port = free_port()
    env = {
        "ENVIRONMENT": "development", "DATABASE_URL": module_database, "REDIS_URL": valkey.url,
        "PORT": str(port), "WEB_THREADS": "4", "CALL_SLOTS": "2",
    }  # fmt: skip
    process = start(env, tmp_path, port, request_s=REQUEST_S)
    address = ("127.0.0.1", port)
    with socket.create_connection(address, timeout=60) as sending, socket.create_connection(address):
        sending.sendall(HEALTH[:20])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        sending.sendall(HEALTH[20:])
        assert b"200 OK" in read_health(sending)
        began_at = time.monotonic()
        # Who only holds a connection is not waited for as long as a request may take.
        assert process.wait(60) == 0
        assert time.monotonic() - began_at < REQUEST_S / 2


def test_an_ending_worker_closes_kept_connections(module_database: str, valkey: Valkey, tmp_path: Path) -> None:
    port = free_port()
    env = {
        "ENVIRONMENT": "development", "DATABASE_URL": module_database, "REDIS_URL": valkey.url,
        "PORT": str(port), "WEB_THREADS": "4", "CALL_SLOTS": "2", "RATE_LIMIT_PUBLIC_MINUTE": "10000000",
    }  # fmt: skip
    process = start(env, tmp_path, port, request_s=REQUEST_S)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as busy:
        answers: list[bytes] = []
        while not answers or b"Connection: close" not in answers[-1]:
            busy.sendall(b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            answers.append(read_health(busy))
            if len(answers) == 50:
                process.send_signal(signal.SIGTERM)

        assert len(answers) > 50
        assert all(b"404 Not Found" in answer for answer in answers)
        assert busy.recv(1) == b""
    assert process.wait(60) == 0


# The last with this server: it keeps these connections until their turn comes, though their clients have gone.
@pytest.mark.usefixtures("worker")
def test_chunked_bodies_on_all_connections_keep_no_client_out(server: Server, clients: Clients) -> None:
    head = b"POST /v1/payment HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for number in range(CONNECTIONS_MAX + 60):
        clients.send(head, source=f"127.0.0.{100 + number % 20}")

    assert sale_s(server) <= SALE_S

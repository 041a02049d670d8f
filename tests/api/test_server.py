"""The gateway under its real server, spoken to by clients that know no manners."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis

from actors.queue.messages import UNDECIDED, CallStamps, answer_key
from core.secrets.secretbox import SecretBox
from core.secrets.signing import sign_request
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.servers.valkey import Valkey
from devstack.supervise.ports import free_port
from models.db import base, counts
from models.merchants import rows as merchants
from tests.actors.queue.workers import eventually

ROOT = Path(__file__).parents[2]
REQUEST_S = 1.5
THREADS = 6
INFO = b'{"order_id":"nobody"}'


@dataclass(frozen=True)
class Server:
    port: int
    key: merchants.IssuedKey
    process: subprocess.Popen[bytes]

    def talk(self, *parts: bytes, pause_s: float = 0.0, timeout_s: float = 90.0) -> bytes:
        """Send the parts, with pauses between them, and return all that is answered until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause_s)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while chunk := connection.recv(65536):
                    answer += chunk
            return answer

    def signed(
        self, target: bytes = b"/v1/payment/info", body: bytes = INFO, *, extra: bytes = b"", close: bool = True
    ) -> bytes:
        """Return a signed request as it goes over the wire."""
        timestamp = str(int(time.time()))
        signature = sign_request(self.key.secret, timestamp, "POST", target.decode(), body)
        head = (
            f"Host: x\r\nX-Public-Id: {self.key.public_id}\r\nX-Timestamp: {timestamp}\r\nX-Signature: {signature}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        ).encode()
        end = b"Connection: close\r\n" if close else b""
        return b"POST " + target + b" HTTP/1.1\r\n" + head + extra + end + b"\r\n" + body


def split(answer: bytes) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and JSON of the first answer in what a server sent."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status_line.split()[1]), headers, json.loads(rest[: int(headers["content-length"])])


def code_of(answer: bytes) -> tuple[int, str]:
    status, headers, body = split(answer)
    assert headers["content-type"] == "application/json"
    assert uuid.UUID(headers["x-request-id"])
    return status, body["error"]["code"]


def start(
    env: dict[str, str], folder: Path, port: int, *, request_s: float = REQUEST_S, connections_max: int = 2000
) -> subprocess.Popen[bytes]:
    config = folder / "gunicorn.conf.py"
    config.write_text(
        f"exec(open({str(ROOT / 'gunicorn.conf.py')!r}).read())\n"
        f"bind = '127.0.0.1:{port}'\nworker_connections = {connections_max}\n"
        f"import api.http.worker\napi.http.worker.REQUEST_S = {request_s}\napi.http.worker.EXCHANGE_S = 60.0\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", str(config), "api.wsgi:app"], cwd=ROOT, env=os.environ | env
    )
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10).close()
            return process
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError("gunicorn did not start")


@contextlib.contextmanager
def serving(
    database: str,
    valkey: Valkey,
    folder: Path,
    *,
    request_s: float = REQUEST_S,
    connections_max: int = 2000,
    end_s: int = 30,
    **more: str,
) -> Iterator[Server]:
    """Serve a shop with a key out of a database."""
    base.connect(database)
    key = merchants.create_key(merchants.create_merchant("Shop").id, "unified", "", SecretBox(DEVELOPMENT_SECRET_KEYS))
    base.close()
    port = free_port()
    env = {
        "ENVIRONMENT": "development", "DATABASE_URL": database, "REDIS_URL": valkey.url, "PORT": str(port),
        "WEB_THREADS": str(THREADS), "CALL_SLOTS": "2", "CALL_WAIT_S": "25",
    }  # fmt: skip
    process = start(env | more, folder, port, request_s=request_s, connections_max=connections_max)
    yield Server(port, key, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(end_s) == 0


@pytest.fixture(scope="module")
def server(module_database: str, valkey: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(module_database, valkey, tmp_path_factory.mktemp("gunicorn"), REDIS_NAMESPACE="server") as served:
        yield served


def test_a_signed_request_is_verified_over_the_raw_target(server: Server) -> None:
    assert code_of(server.talk(server.signed())) == (404, "payment.not_found")
    assert code_of(server.talk(server.signed(b"/v1/payment/info?a=%2f"))) == (404, "payment.not_found")


@pytest.mark.parametrize(
    "target",
    [
        b"//v1/payment/info",
        b"/v1%2Fpayment/info",
        b"/v1/p%61yment/info",
        b"/v1/./payment/info",
        b"/v1/payment/info/",
        b"http://x/v1/payment/info",
        b"/v1/payment/info#a",
    ],
)
def test_a_target_in_another_spelling_is_not_found_even_if_signed_so(server: Server, target: bytes) -> None:
    assert code_of(server.talk(server.signed(target))) == (404, "request.not_found")


@pytest.mark.parametrize("header", [b"X-Signature", b"X-Timestamp", b"X-Public-Id", b"x-signature"])
def test_a_signing_header_sent_twice_is_a_bad_signature(server: Server, header: bytes) -> None:
    request = server.signed()
    line = next(line for line in request.split(b"\r\n") if line.lower().startswith(header.lower()))

    answer = server.talk(server.signed(extra=line + b"\r\n"))

    assert code_of(answer) == (401, "merchant.bad_signature")


def test_a_header_with_an_underscore_is_not_the_one_with_a_dash(server: Server) -> None:
    beside = server.talk(server.signed(extra=b"X_Signature: 0\r\nX_Public_Id: pk_other\r\nSCRIPT_NAME: /v1\r\n"))
    instead = server.talk(server.signed().replace(b"X-Signature", b"X_Signature"))

    assert code_of(beside) == (404, "payment.not_found")
    assert code_of(instead) == (401, "merchant.bad_signature")


def test_a_chunked_body_is_refused_and_nothing_behind_it_is_answered(server: Server) -> None:
    chunked = (
        b"POST /v1/payment/info HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
        b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n'
    )

    answer = server.talk(chunked + server.signed())

    assert code_of(answer) == (411, "request.length_required")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Content-Length: 2\r\nContent-Length: 2",
        b"Content-Length: 2\r\nContent-Length: 20",
        b"Content-Length: -2",
        b"Content-Length: +2",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: gzip, chunked, chunked",
        b"Content-Length : 2",
        b"Header without colon",
        b"Content-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2",
        b"A: b\r\n folded\r\nContent-Length: 2",
        b"A: \x00",
    ],
)
def test_a_message_that_two_servers_could_read_differently_is_refused_as_json(server: Server, head: bytes) -> None:
    request = b"POST /v1/payment HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n{}"

    answer = server.talk(request + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")

    assert code_of(answer) == (400, "request.malformed")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 9000 + b"\r\n\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["words", "version", "lower-case", "long-line", "long-header", "not-ascii", "tls"],
)
def test_bytes_that_are_not_http_are_refused_as_json(server: Server, request_bytes: bytes) -> None:
    assert code_of(server.talk(request_bytes)) == (400, "request.malformed")


def test_pipelined_requests_are_answered_in_order_and_each_by_its_own_signature(server: Server) -> None:
    answer = server.talk(
        server.signed(close=False)
        + server.signed(body=b"[]", close=False)
        + server.signed().replace(b"X-Signature: ", b"X-Signature: 0")
    )

    codes = [
        json.loads(part[part.index(b"{") :].split(b"HTTP/1.1")[0])["error"]["code"]
        for part in answer.split(b"\r\n\r\n")[1:]
    ]
    assert codes == ["payment.not_found", "request.bad_json", "merchant.bad_signature"]


def test_a_body_past_the_limit_is_refused_before_it_is_sent(server: Server) -> None:
    head = b"POST /v1/payment HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1048577\r\n\r\n"

    answer = server.talk(head + b"x" * 1000)

    assert code_of(answer) == (413, "request.too_large")


def test_a_kept_connection_ends_after_an_unread_body(server: Server) -> None:
    request = server.signed(body=b" " * (1024 * 1024 + 1), close=False)

    # The server ends it, too: `talk` reads until then.
    status, headers, _ = split(server.talk(request))

    assert (status, headers["connection"]) == (413, "close")


def test_a_body_of_exactly_the_limit_is_read(server: Server) -> None:
    body = INFO + b" " * (1024 * 1024 - len(INFO))

    assert code_of(server.talk(server.signed(body=body))) == (404, "payment.not_found")


def test_a_body_in_small_pieces_is_read(server: Server) -> None:
    request = server.signed()
    pieces = [request[at : at + 40] for at in range(0, len(request), 40)]

    assert code_of(server.talk(*pieces, pause_s=0.01)) == (404, "payment.not_found")


def test_a_body_that_does_not_come_is_waited_for_a_while_only(server: Server) -> None:
    started_at = time.monotonic()

    answer = server.talk(server.signed()[:-5])

    assert code_of(answer) == (400, "auth.body_read")
    assert REQUEST_S <= time.monotonic() - started_at < 45


def test_silent_clients_do_not_stop_the_gateway(server: Server) -> None:
    stalled = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3 * THREADS)]
    try:
        for number, connection in enumerate(stalled):
            connection.sendall(server.signed()[:-1] if number % 2 else b"GET /healthz HTTP/1.1\r\nHo")
        started_at = time.monotonic()

        assert split(server.talk(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))[0] == 200
        # Not even the time of one whole exchange.
        assert time.monotonic() - started_at < 45
    finally:
        for connection in stalled:
            connection.close()


def test_an_expectation_is_met(server: Server) -> None:
    request = server.signed(extra=b"Expect: 100-continue\r\n")
    head, _, body = request.partition(b"\r\n\r\n")

    answer = server.talk(head + b"\r\n\r\n", body, pause_s=0.1)

    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert code_of(answer.split(b"\r\n\r\n", 1)[1]) == (404, "payment.not_found")


def test_a_used_key_is_read_again_between_requests(server: Server, module_database: str) -> None:
    with contextlib.closing(psycopg2.connect(module_database)) as session, session.cursor() as cursor:
        session.autocommit = True

        def key_reads() -> int:
            cursor.execute("SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'api_keys'")
            return int(cursor.fetchall()[0][0])

        server.talk(server.signed())
        # A read by a request is counted at most a second later.
        time.sleep(1.5)
        before = key_reads()

        eventually(lambda: key_reads() > before + 1)


def test_calls_without_a_worker_end_busy_while_reads_go_on(server: Server, valkey: Valkey) -> None:
    body = b'{"amount":"1","currency":"USD"}'
    answers: list[bytes] = []
    stamps = CallStamps(DEVELOPMENT_SECRET_KEYS)
    callers = [
        threading.Thread(target=lambda: answers.append(server.talk(server.signed(b"/v1/payment", body))))
        for _ in range(2)
    ]
    with redis.Redis.from_url(valkey.url) as queue:
        for caller in callers:
            caller.start()
        eventually(lambda: queue.hlen("server:invoices.msgs") == 2)

        third = server.talk(server.signed(b"/v1/payment", body))
        read = server.talk(server.signed())
        assert answers == [], "both were answered while the first two calls waited"
        # A message has its call's id; their waits end without an answer that decides.
        for call_id in queue.hkeys("server:invoices.msgs"):
            body = stamps.pack("invoices", "create_invoice", uuid.UUID(call_id.decode()), UNDECIDED)
            queue.lpush(answer_key("server", call_id.decode()), body)
        for caller in callers:
            caller.join()

    assert code_of(third) == (503, "gateway.busy")
    assert code_of(read) == (404, "payment.not_found")
    assert [code_of(answer) for answer in answers] == [(503, "gateway.busy")] * 2
    assert split(answers[0])[1]["retry-after"] == "1"


def test_the_web_process_loads_neither_actors_nor_keys() -> None:
    code = (
        "import sys; sys.path.insert(0, '.'); import api.app, api.http.worker; "
        "import actors.queue.broker, actors.queue.caller; "
        "print(sorted(name for name in sys.modules if name.split('.')[0] in "
        "{'chains', 'web3', 'embit', 'coincurve', 'eth_account', 'tronpy'} or name in "
        "{'actors.invoices.calls', 'actors.webhooks.deliver', 'actors.addresses.fill', 'actors.scan.follow'}))"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"


def test_too_many_requests_have_their_own_shape_under_the_real_server_also_without_redis(
    module_database: str, tmp_path: Path
) -> None:
    port = free_port()
    env = {
        "ENVIRONMENT": "development", "DATABASE_URL": module_database, "PORT": str(port),
        "REDIS_URL": "redis://127.0.0.1:1", "WEB_THREADS": "4", "CALL_SLOTS": "2", "RATE_LIMIT_PUBLIC_MINUTE": "3",
    }  # fmt: skip
    process = start(env, tmp_path, port)
    try:
        request = (
            b"GET /v1/currencies HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.%d\r\nConnection: close\r\n\r\n"
        )
        server = Server(port, merchants.IssuedKey("", ""), process)
        answers = [split(server.talk(request % number)) for number in range(4)]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    assert [status for status, _, _ in answers] == [200, 200, 200, 429]
    _, headers, body = answers[-1]
    assert set(body) == {"state", "message"}
    assert body["state"] == 1
    assert int(headers["retry-after"]) >= 1
    assert headers["x-request-id"]


@pytest.mark.fresh_database
def test_no_counter_falls_whichever_web_process_is_asked_while_they_are_replaced(
    database_url: str, valkey: Valkey, tmp_path: Path
) -> None:
    shown: dict[str, float] = {}
    with serving(database_url, valkey, tmp_path, REDIS_NAMESPACE="counts", WEB_CONCURRENCY="2") as server:
        for number in range(60):
            if number % 20 == 10:
                replace_a_worker(server.process.pid)
            assert server.talk(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
                b"HTTP/1.1 200"
            )
            page = server.talk(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").decode()
            before, shown = shown, counters_of(page)
            assert not {name: number for name, number in before.items() if shown[name] < number}

    base.connect(database_url)
    assert counts.read()["sluice_http_requests", ("GET", "/healthz", "200")][0] >= 60
    assert counts.read()["sluice_http_requests", ("GET", "/metrics", "200")] == [60]


def replace_a_worker(master: int) -> None:
    """End a worker process of gunicorn, and wait for its successor."""
    place = Path(f"/proc/{master}/task/{master}/children")
    before = place.read_text().split()
    os.kill(int(before[0]), signal.SIGTERM)
    eventually(lambda: len(now := place.read_text().split()) == len(before) and now != before)


def counters_of(page: str) -> dict[str, float]:
    """Return the samples of the counters and histograms on a page of metrics."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    samples = re.findall(r"^(\w+)(\{.*\})? (\S+)$", page, re.MULTILINE)
    endings = {"counter": ("_total", ""), "histogram": ("_bucket", "_sum", "_count")}
    counted = {name + ending for name, kind in kinds.items() for ending in endings.get(kind, ())}
    return {name + labels: float(number) for name, labels, number in samples if name in counted}

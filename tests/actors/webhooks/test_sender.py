"""Sends one webhook to one receiver, good or bad: request, success, limits, and refused addresses."""

from __future__ import annotations

import contextlib
import gzip
import ipaddress
import json
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp.streams import DataQueue
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from actors.webhooks import sender as webhook_sender
from actors.webhooks.connector import LOOKUP_THREADS
from actors.webhooks.sender import ANSWER_BYTES_MAX, Outcome, Post, Sender
from core.ids import uuid7
from tests.peers.receiver import Answer, ForgedError, Hook, Receiver

SECRET = "whsec_of_this_test"
BODY = '{"type": "payment", "order_id": "ü", "amount":"1.10"}'.encode()
PUBLIC = "93.184.215.14"
# For receivers that use it up, and for all others.
TOTAL_S = 0.6
PATIENT_S = 60.0
KEYS = count(1)


def post(url: str, *, body: bytes = BODY, is_endpoint: bool = True, merchant_id: str = "a shop") -> Post:
    return Post(
        key=next(KEYS),
        id=str(uuid7()),
        merchant_id=merchant_id,
        event="invoice.paid",
        url=url,
        body=body,
        secret=SECRET,
        is_endpoint=is_endpoint,
    )


def collect(sender: Sender, count: int = 1) -> list[Outcome]:
    collected: list[Outcome] = []
    until = time.monotonic() + 90
    while len(collected) < count and time.monotonic() < until:
        collected += sender.collect(0.1)
    assert len(collected) == count
    return collected


def send(
    *urls: str,
    allow_private: bool = True,
    is_endpoint: bool = True,
    own_hosts: Sequence[str] = (),
    total_s: float = PATIENT_S,
) -> list[Outcome]:
    """Send webhooks in succession with one Sender."""
    with Sender(allow_private=allow_private, own_hosts=own_hosts, total_s=total_s) as sender:
        outcomes = []
        for url in urls:
            sender.send([post(url, is_endpoint=is_endpoint)])
            outcomes += collect(sender)
        return outcomes


def answered(
    answer: Answer | Callable[[Hook], Answer], times: int = 1, *, total_s: float = PATIENT_S
) -> tuple[list[Outcome], Receiver]:
    with Receiver(answer) as receiver:
        return send(*[receiver.url] * times, total_s=total_s), receiver


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Set the addresses of names, one list for each lookup; the last one stays."""
    known: dict[str, list[list[str]]] = {}

    def lookup(host: str, port: int, *_rest: object, **_more: object) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        addresses = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        return [
            (socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses
        ]

    monkeypatch.setattr("socket.getaddrinfo", lookup)
    return known


# The request ------------------------------------------------------------------------------------------------


def test_a_webhook_has_the_form_of_the_specification() -> None:
    with Receiver() as receiver, Sender(allow_private=True, own_hosts=()) as sender:
        sent = post(f"{receiver.url}/a%2Fb?x=%C3%BC&y=1#gone")
        sender.send([sent])
        (outcome,) = collect(sender)
    (hook,) = receiver.hooks
    assert (outcome.key, outcome.status_code, outcome.error) == (sent.key, 200, None)
    assert (hook.method, hook.target, hook.body) == ("POST", "/hook/a%2Fb?x=%C3%BC&y=1", BODY)
    assert hook.verified(SECRET) == json.loads(BODY)
    names = ("content-type", "x-webhook-event", "x-webhook-id", "accept-encoding", "host")
    assert [hook.headers[name] for name in names] == [
        "application/json", "invoice.paid", sent.id, "identity", f"127.0.0.1:{receiver.port}",
    ]  # fmt: skip
    assert hook.headers["user-agent"].startswith("Sluice/")
    assert hook.headers["x-webhook-signature"] == hook.headers["x-webhook-signature"].lower()


def test_the_receivers_own_check_notices_every_change() -> None:
    _, receiver = answered(Answer())
    (hook,) = receiver.hooks
    for change in ({"x-webhook-timestamp": "1"}, {"x-webhook-signature": "0" * 64}, {"x-webhook-signature": "ü"}):
        with pytest.raises(ForgedError):
            Hook(**{**_fields(hook), "headers": hook.headers | change}).verified(SECRET)
    with pytest.raises(ForgedError):
        Hook(**{**_fields(hook), "body": hook.body + b" "}).verified(SECRET)
    with pytest.raises(ForgedError):
        hook.verified("another secret")


def _fields(hook: Hook) -> dict[str, Any]:
    return {name: getattr(hook, name) for name in ("method", "target", "headers", "body", "at")}


def test_cookies_are_not_kept() -> None:
    with Receiver(Answer(headers=(("Set-Cookie", "a=b; Path=/"),))) as receiver:
        send(*[f"http://localhost:{receiver.port}/"] * 2)
    assert [hook.headers.get("cookie") for hook in receiver.hooks] == [None, None]


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        outcomes, _ = answered(Answer())
        assert (outcomes[0].error, proxy.hooks) == (None, [])


def test_connections_are_kept_between_deliveries() -> None:
    _, receiver = answered(Answer(), times=5)
    assert receiver.connections == 1


# Success ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    ((outcome,), _) = answered(Answer(status=status, body=b""))
    assert (outcome.status_code, outcome.error) == (status, None)


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_status_is_a_failure(status: int) -> None:
    ((outcome,), _) = answered(Answer(status=status, body=b""))
    assert (outcome.status_code, outcome.error) == (status, f"answered {status}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with Receiver() as elsewhere:
        ((outcome,), receiver) = answered(Answer(status=status, headers=(("Location", elsewhere.url),)))
        assert (outcome.error, len(receiver.hooks), elsewhere.hooks) == (f"answered {status}", 1, [])


def test_a_closed_port_is_a_failure() -> None:
    with Receiver() as receiver:
        url = receiver.url
    assert send(url)[0].error == "no connection"


def test_a_dropped_connection_is_one_failed_request() -> None:
    ((outcome,), receiver) = answered(Answer(drop=True))
    assert (outcome.status_code, outcome.error) == (None, "the connection was closed without an answer")
    assert len(receiver.hooks) == 1


def test_a_kept_connection_that_the_receiver_closed_is_replaced() -> None:
    answers = iter([Answer(), Answer(drop=True), Answer(status=201)])
    (outcomes, receiver) = answered(lambda _: next(answers), times=2)
    assert [outcome.status_code for outcome in outcomes] == [200, 201]
    assert receiver.hooks[1].id == receiver.hooks[2].id


@pytest.mark.parametrize(
    "raw",
    [b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 banana\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"a" * 100_000 + b"\r\n\r\n"],
)
def test_an_answer_that_is_not_http_is_a_failure(raw: bytes) -> None:
    ((outcome,), _) = answered(Answer(raw=raw))
    assert outcome.error == "the answer was no HTTP"


def test_an_interrupted_answer_is_a_failure() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc"
    ((outcome,), _) = answered(Answer(raw=raw))
    assert (outcome.status_code, outcome.error) == (200, "the answer broke off")


# Bad receivers -----------------------------------------------------------------------------------------------


def test_a_slow_head_ends_at_the_time_limit() -> None:
    ((outcome,), _) = answered(Answer(head_delay_s=60), total_s=TOTAL_S)
    assert (outcome.status_code, outcome.error) == (None, "timeout")
    assert TOTAL_S <= outcome.took_s < 30


def test_a_slow_body_ends_at_the_time_limit() -> None:
    ((outcome,), _) = answered(Answer(repeat=600, piece_delay_s=0.1), total_s=2 * TOTAL_S)
    assert (outcome.status_code, outcome.error) == (200, "timeout")
    assert outcome.took_s < 30


def test_the_second_try_on_a_new_connection_shares_the_time_limit() -> None:
    answers = iter([Answer(), Answer(drop=True, head_delay_s=0.8 * TOTAL_S), Answer(head_delay_s=0.8 * TOTAL_S)])
    (outcomes, _) = answered(lambda _: next(answers), times=2, total_s=TOTAL_S)
    assert outcomes[1].error == "timeout"


def test_each_attempt_has_its_own_time_limit_and_the_worker_continues() -> None:
    answers = iter([Answer(head_delay_s=60), Answer(head_delay_s=60), Answer()])
    with (
        Receiver(lambda _: next(answers)) as receiver,
        Sender(allow_private=True, own_hosts=(), total_s=TOTAL_S) as sender,
        pytest.MonkeyPatch.context() as patched,
    ):
        # With one worker: later webhooks are attempted by the one whose attempts were ended.
        patched.setattr(webhook_sender, "CROWD_MAX", 1)
        patched.setattr(webhook_sender, "YOUNG_S", 30)
        sender.send([post(receiver.url) for _ in range(3)])
        outcomes = collect(sender, 3)
    assert [outcome.error for outcome in outcomes] == ["timeout", "timeout", None]
    assert min(outcome.took_s for outcome in outcomes[:2]) >= TOTAL_S


def test_an_endless_body_is_abandoned_after_64_kib() -> None:
    ((outcome,), receiver) = answered(Answer(body=b"x" * 10_000, repeat=100_000))
    assert (outcome.status_code, outcome.error) == (200, None)
    # Bytes on their way, in the buffers of two sockets.
    assert receiver.sent_bytes < ANSWER_BYTES_MAX + 20_000_000


def test_an_answer_up_to_the_limit_keeps_its_connection_and_a_longer_one_closes_it() -> None:
    for length, connections in ((ANSWER_BYTES_MAX, 1), (100 * ANSWER_BYTES_MAX, 2)):
        _, receiver = answered(Answer(body=b"x" * length), times=2)
        assert receiver.connections == connections


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X-More: y\r\n" * 200_000,
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * 2_000_000,
        b"HTTP/1.1 " + b"2" * 2_000_000,
    ],
)
def test_an_endless_head_is_a_failure(raw: bytes) -> None:
    (outcome,), _ = answered(Answer(raw=raw))
    assert (outcome.status_code, outcome.error) == (None, "the answer was no HTTP")


def test_endless_informational_answers_are_a_failure() -> None:
    (outcome,), _ = answered(Answer(raw=b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20_000))
    assert outcome.error is not None
    assert outcome.took_s < PATIENT_S / 2


@pytest.mark.parametrize(
    ("head", "answer"),
    [
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", (None, "the answer was no HTTP")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, None)),
    ],
)
def test_only_a_few_endless_heads_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch, head: bytes, answer: tuple[int | None, str | None]
) -> None:
    read: list[object] = []
    feed = DataQueue.feed_data

    def feed_data(queue: DataQueue[Any], data: object, size: int = 0) -> None:
        read.append(data)
        feed(queue, data, size)

    monkeypatch.setattr(DataQueue, "feed_data", feed_data)
    (outcome,), _ = answered(Answer(raw=head * 20_000))
    assert (outcome.status_code, outcome.error) == answer
    assert len(read) < 200, "it is read whole while there is no other delivery"


def test_endless_chunks_are_abandoned_after_64_kib() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    (outcome,), _ = answered(Answer(raw=head + b"2000\r\n" + b"y" * 8192 + b"\r\n" + b"1\r\ny\r\n" * 100_000))
    assert (outcome.status_code, outcome.error) == (200, None)


@pytest.mark.parametrize("body", [gzip.compress(b"0" * 30_000_000), b"no gzip at all"])
def test_a_compressed_answer_is_not_unpacked(body: bytes) -> None:
    ((outcome,), _) = answered(Answer(headers=(("Content-Encoding", "gzip"),), body=body))
    assert (outcome.error, outcome.status_code) == (None, 200)


def test_bad_receivers_do_not_delay_a_good_one() -> None:
    bad = [Answer(head_delay_s=90), Answer(repeat=900, piece_delay_s=0.1), Answer(drop=True), Answer(status=302)]
    receivers = [Receiver(answer).start() for answer in bad]
    with Receiver() as good, Sender(allow_private=True, own_hosts=(), total_s=90) as sender:
        sender.send([post(receiver.url) for receiver in receivers * 10] + [post(good.url) for _ in range(20)])
        # All but those that use up their time limit.
        outcomes = collect(sender, 40)
    for receiver in receivers:
        receiver.stop()
    quick = [outcome for outcome in outcomes if outcome.error is None]
    assert len(quick) == 20
    assert max(outcome.took_s for outcome in outcomes) < 45


def test_attempts_under_way_are_bounded_while_answers_come_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sender, "YOUNG_S", 30)
    monkeypatch.setattr(webhook_sender, "CROWD_MAX", 7)
    with (
        Receiver(Answer(head_delay_s=0.05)) as receiver,
        Sender(allow_private=True, own_hosts=(), total_s=PATIENT_S) as sender,
    ):
        sender.send([post(receiver.url) for _ in range(30)])
        assert {outcome.error for outcome in collect(sender, 30)} == {None}
    assert receiver.under_way_max == 7
    assert len(receiver.hooks) == 30


def test_attempts_waiting_for_a_slow_receiver_make_room_for_others() -> None:
    crowd = webhook_sender.CROWD_MAX
    with (
        Receiver(Answer(head_delay_s=90)) as slow,
        Receiver() as quick,
        Sender(allow_private=True, own_hosts=(), total_s=90) as sender,
    ):
        sender.send([*(post(slow.url) for _ in range(3 * crowd)), post(quick.url)])
        quick.wait_for(1, timeout_s=45)
        slow.wait_for(3 * crowd, timeout_s=45)
        assert slow.under_way_max == 3 * crowd


def test_silent_name_servers_leave_other_merchants_their_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    release, look_up, count = threading.Event(), socket.getaddrinfo, 2 * LOOKUP_THREADS

    def wait(host: str, *rest: Any, **more: Any) -> list[Any]:
        if host.endswith(".silent.example"):
            release.wait(60)
        return look_up("localhost", *rest, **more)

    monkeypatch.setattr("socket.getaddrinfo", wait)
    monkeypatch.setattr("actors.webhooks.connector.LOOKUP_S", PATIENT_S)
    with Receiver() as closed:
        port = closed.port
    with Receiver() as quick, Sender(allow_private=True, own_hosts=(), total_s=PATIENT_S) as sender:
        sender.send([post(f"https://shop-{number}.silent.example:{port}/") for number in range(count)])
        sender.send([post(f"http://localhost:{quick.port}/", merchant_id="another shop")])
        quick.wait_for(1, timeout_s=30)
        release.set()
        # A delayed lookup gets its turn, in the end.
        outcomes = collect(sender, count + 1)
    assert sorted({str(outcome.error) for outcome in outcomes}) == ["None", "no connection"]


def test_closing_the_sender_drops_attempts_under_way() -> None:
    with Receiver(Answer(head_delay_s=5)) as receiver:
        with Sender(allow_private=True, own_hosts=()) as sender:
            sender.send([post(receiver.url)])
            receiver.wait_for(1)
        assert sender.collect(0) == []


def test_an_unexpected_error_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(webhook_sender, "sign_webhook", fail)
    assert send("http://127.0.0.1:9999/")[0].error == "the attempt failed"


# Refused addresses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",  # noqa: S104
        "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]",
        "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "localhost", "metadata.internal",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_endpoint", [True, False])
def test_private_addresses_are_refused_in_every_spelling(host: str, *, is_endpoint: bool) -> None:
    (outcome,) = send(f"https://{host}:8443/", allow_private=False, is_endpoint=is_endpoint)
    assert outcome.status_code is None
    assert str(outcome.error).startswith("refused: ")


def test_even_in_development_a_callback_to_loopback_is_refused() -> None:
    with Receiver() as receiver:
        (outcome,) = send(receiver.url, allow_private=True, is_endpoint=False)
    assert (outcome.error, receiver.connections) == ("refused: the address is private or reserved", 0)


def test_a_name_that_resolves_to_a_private_address_is_refused(names: dict[str, list[list[str]]]) -> None:
    names["shop.example"] = [["127.0.0.1"]]
    (outcome,) = send("https://shop.example/", allow_private=False)
    assert outcome.error == "refused: the name leads to a private or reserved address"


def test_a_name_with_one_private_address_is_refused(names: dict[str, list[list[str]]]) -> None:
    names["shop.example"] = [[PUBLIC, "127.0.0.1"]]
    (outcome,) = send("https://shop.example/", allow_private=False)
    assert outcome.error == "refused: the name leads to a private or reserved address"


def test_a_name_is_looked_up_once_and_the_checked_address_is_connected_to(
    names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["shop.example"] = [[PUBLIC], ["127.0.0.1"]]
    asked: list[str] = []

    def refuse_socket(info: tuple[Any, ...], **_: object) -> socket.socket:
        asked.append(info[4][0])
        raise OSError("no network in tests")

    monkeypatch.setattr("actors.webhooks.connector._open_socket", refuse_socket)
    (outcome,) = send("https://shop.example/", allow_private=False)
    assert (asked, outcome.error) == ([PUBLIC], "no connection")
    assert len(names["shop.example"]) == 1


def test_an_unknown_name_is_a_failure(names: dict[str, list[list[str]]]) -> None:
    del names
    assert send("https://shop.example/", allow_private=False)[0].error == "the name was not found"


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/",
        "https://user:password@shop.example/",
        "https://shop.example:22/",
        "https://shop.example\\@127.0.0.1/",
        "https://127。0。0。1/",
        "ftp://shop.example/",
        "https://sluice.example/v1/payment",
    ],
)
def test_urls_refused_at_registration_are_refused_again(url: str) -> None:
    (outcome,) = send(url, allow_private=False, own_hosts=["sluice.example"])
    assert str(outcome.error).startswith("refused: ")


# TLS ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, list[list[str]]]) -> Iterator[Receiver]:
    """Run a receiver at shop.example and wrong.example with a trusted certificate for the former."""
    names["shop.example"] = names["wrong.example"] = [["127.0.0.1"]]
    with Receiver(tls=_serving(*_certificate(tmp_path), monkeypatch)) as receiver:
        yield receiver


def _serving(certificate: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return a server's context with a certificate that senders trust from now on."""
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context(cafile=str(certificate)))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    return serving


def _certificate(folder: Path, *, from_days: int = -1, until_days: int = 1) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=key.public_key())
        .serial_number(1)
        .not_valid_before(now + timedelta(days=from_days))
        .not_valid_after(now + timedelta(days=until_days))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("shop.example"), x509.IPAddress(ipaddress.ip_address("::9"))]),
            False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


def test_tls_verifies_the_name_and_not_the_connected_address(shop_tls: Receiver) -> None:
    right, wrong = send(f"https://shop.example:{shop_tls.port}/", f"https://wrong.example:{shop_tls.port}/")
    assert (right.error, wrong.error) == (None, "TLS failed")
    assert [hook.headers["host"] for hook in shop_tls.hooks] == [f"shop.example:{shop_tls.port}"]


def test_an_untrusted_certificate_is_refused(shop_tls: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context())
    (outcome,) = send(f"https://shop.example:{shop_tls.port}/")
    assert (outcome.error, shop_tls.hooks) == ("TLS failed", [])


def test_a_callback_does_not_reuse_an_endpoints_connection(shop_tls: Receiver) -> None:
    url = f"https://shop.example:{shop_tls.port}/"
    with Sender(allow_private=True, own_hosts=(), total_s=PATIENT_S) as sender:
        sender.send([post(url)])
        assert collect(sender)[0].error is None
        sender.send([post(url, is_endpoint=False)])
        assert collect(sender)[0].error == "refused: the name leads to a private or reserved address"
    assert len(shop_tls.hooks) == 1


@pytest.mark.parametrize(("from_days", "until_days"), [(-2, -1), (1, 2)])
def test_an_expired_or_future_certificate_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: dict[str, list[list[str]]],
    from_days: int,
    until_days: int,
) -> None:
    names["shop.example"] = [["127.0.0.1"]]
    certificate, key = _certificate(tmp_path, from_days=from_days, until_days=until_days)
    with Receiver(tls=_serving(certificate, key, monkeypatch)) as receiver:
        (outcome,) = send(f"https://shop.example:{receiver.port}/")
    assert (outcome.error, receiver.hooks) == ("TLS failed", [])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_broken_protocol_versions_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, list[list[str]]], version: ssl.TLSVersion
) -> None:
    names["shop.example"] = [["127.0.0.1"]]
    serving = _serving(*_certificate(tmp_path), monkeypatch)
    with warnings.catch_warnings():
        # Python warns that the server offers a broken version.
        warnings.simplefilter("ignore", DeprecationWarning)
        serving.minimum_version = serving.maximum_version = version
        serving.set_ciphers("ALL:@SECLEVEL=0")
        assert _speaks(serving, version), "the server offers it"
    with Receiver(tls=serving) as receiver:
        (outcome,) = send(f"https://shop.example:{receiver.port}/")
    # Which of the two depends on whether the server closes the session properly.
    assert outcome.error in {"TLS failed", "no connection"}
    assert (outcome.status_code, receiver.hooks) == (None, [])


def _speaks(serving: ssl.SSLContext, version: ssl.TLSVersion) -> bool:
    """Return True if a client as lax as the server connects to it, all in memory."""
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    lax.check_hostname, lax.verify_mode = False, ssl.CERT_NONE
    lax.minimum_version = lax.maximum_version = version
    lax.set_ciphers("ALL:@SECLEVEL=0")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = lax.wrap_bio(down, up), serving.wrap_bio(up, down, server_side=True)
    for _ in range(6):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return client.version() == server.version() is not None


def test_plain_http_on_an_https_port_is_refused(names: dict[str, list[list[str]]]) -> None:
    names["shop.example"] = [["127.0.0.1"]]

    def answer_plainly() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer_plainly)
        thread.start()
        (outcome,) = send(f"https://shop.example:{server.getsockname()[1]}/")
        thread.join()
    assert (outcome.status_code, outcome.error) == (None, "TLS failed")


def test_an_endless_handshake_ends_at_the_time_limit(names: dict[str, list[list[str]]]) -> None:
    names["shop.example"] = [["127.0.0.1"]]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (outcome,) = send(f"https://shop.example:{silent.getsockname()[1]}/", total_s=TOTAL_S)
    assert outcome.error == "timeout"
    assert TOTAL_S <= outcome.took_s < 30


def test_a_redirect_into_a_private_network_is_not_followed(shop_tls: Receiver) -> None:
    with Receiver() as inside:
        shop_tls.behaviour = lambda _: Answer(status=307, headers=(("Location", inside.url),))
        (outcome,) = send(f"https://shop.example:{shop_tls.port}/")
    assert (outcome.status_code, outcome.error, inside.connections) == (307, "answered 307", 0)

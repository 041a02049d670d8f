"""`sluice dev listen` judges each webhook, forwards the verified ones alone, and shows hostile text harmlessly."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import urllib3

from cli.output import CommandError
from devstack.running import listen
from devstack.running.listen import Listener
from devstack.shop.receiver import Delivery, Receiver
from tests.cli.conftest import CommandLine
from tests.devstack.running.conftest import Folder

SECRET = "whsec_new"
BODY = b'{"type":"payment","status":"paid"}'


def delivery(
    *, secret: str = SECRET, age_s: int = 0, body: bytes = BODY, sent: bytes = BODY, event: str = "invoice.paid"
) -> Delivery:
    stamp = str(int(time.time()) - age_s)
    signature = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    headers = {
        "X-Webhook-Event": event, "X-Webhook-Id": "d1", "X-Webhook-Timestamp": stamp,
        "X-Webhook-Signature": signature, "Content-Type": "application/json", "Cookie": "c", "Host": "h",
    }  # fmt: skip
    return Delivery(headers, sent)


def listener(target: str | None = None) -> Listener:
    made = Listener(target)
    made.secret = SECRET
    return made


def test_a_genuine_webhook_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert listener().take(delivery()) == 200
    head, body = capsys.readouterr().out.splitlines()
    assert head.endswith("invoice.paid d1 verified")
    assert body == f"    {BODY.decode()}"


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (lambda: delivery(sent=BODY.replace(b"paid", b"Paid")), "the signature does not match"),
        (lambda: delivery(secret="whsec_old"), "the signature does not match"),
        (lambda: delivery(age_s=301), "the timestamp is 30"),
        (lambda: delivery(age_s=-400), "the timestamp is -"),
        (lambda: Delivery({}, BODY), "the signature does not match"),
        (
            lambda: Delivery({"X-Webhook-Timestamp": "é", "X-Webhook-Signature": "é"}, BODY),
            "the signature does not match",
        ),
    ],
)
def test_a_forged_or_replayed_webhook_is_refused_and_not_forwarded(
    capsys: pytest.CaptureFixture[str], forged: Callable[[], Delivery], reason: str
) -> None:
    assert listener("http://127.0.0.1:1/hook").take(forged()) == 400
    assert f"NOT VERIFIED: {reason}" in capsys.readouterr().out


def test_hostile_text_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    body = '{"order_id":"\x1b[2J\u202eevil\r\nfake line"}'.encode()
    listener().take(delivery(body=body, sent=body, event="invoice.\x9b2Jpaid"))
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2
    assert not set(out) & set("\x1b\x9b\u202e\r")
    assert "\\x1b[2J\\u202eevil\\r\\nfake line" in out


class Shop(BaseHTTPRequestHandler):
    """A shop that keeps what it gets, and answers with its status."""

    status = 204
    got: list[tuple[dict[str, str], bytes]]

    def do_POST(self) -> None:
        self.got.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[tuple[type[Shop], str]]:
    class Own(Shop):
        got: list[tuple[dict[str, str], bytes]] = []  # noqa: RUF012 - one for each test

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Own, f"http://127.0.0.1:{server.server_port}/hooks"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("status", [204, 500, 302])
def test_the_shops_answer_is_the_gateways_and_no_redirect_is_followed(
    shop: tuple[type[Shop], str], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    kind, url = shop
    kind.status = status
    sent = delivery()
    assert listener(url).take(sent) == status
    ((headers, body),) = kind.got
    assert body == BODY
    assert headers["X-Webhook-Signature"] == sent.headers["X-Webhook-Signature"]
    assert "Cookie" not in headers
    assert f"verified; {url} answered {status}" in capsys.readouterr().out


def test_a_shop_that_is_away_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert listener("http://127.0.0.1:1/hook").take(delivery()) == 502
    assert "http://127.0.0.1:1/hook does not answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://shop.example.com/hooks", "an address of this machine"),
        ("http://127.0.0.1.example.com/", "an address of this machine"),
        ("http://127.0.0.1@evil.example/", "an address of this machine"),
        ("http://10.0.0.1/", "an address of this machine"),
        ("ftp://127.0.0.1/", "takes an address as"),
        ("127.0.0.1:3000", "takes an address as"),
        ("http://127.0.0.1:99999/", "takes an address as"),
        ("http://[::1", "takes an address as"),
        ("", "takes an address as"),
    ],
)
def test_only_this_machine_gets_webhooks_forwarded(url: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        listen._target(url)


@pytest.mark.parametrize("url", ["http://localhost:3000/hooks", "https://127.0.0.1/", "http://[::1]:80/x"])
def test_addresses_of_this_machine_are_taken(url: str) -> None:
    assert listen._target(url) == url


@pytest.mark.parametrize("length", ["0", "-1", "x", "65537", "\u0661"])
def test_a_receiver_reads_no_body_without_a_bounded_length(length: str) -> None:
    with Receiver() as receiver:
        answer = urllib3.request(
            "POST", receiver.url, headers={"Content-Length": length.encode().decode("latin-1")}, retries=False
        )
    assert answer.status == 400


def test_it_ends_with_its_stack(sluice: CommandLine, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "_secret", lambda *_: folder.end() or SECRET)
    sluice.env = {}
    outcome = sluice("dev", "listen", "--data", str(folder.path))
    assert outcome.code == 1
    assert "the stack has ended: start it again" in outcome.err
    assert f"webhook secret {SECRET}" in outcome.out


def test_ctrl_c_ends_it_well(sluice: CommandLine, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(listen, "_secret", lambda *_: SECRET)
    monkeypatch.setattr(listen.time, "sleep", interrupt)
    sluice.env = {}
    assert sluice("dev", "listen", "--data", str(folder.path)).code == 0

"""Redacts every line of every library and adds its process and request."""

import base64
import contextlib
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from core.logs import log
from core.logs.redact import TEXT_CHARS_MAX, Redactor, secrets_of
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.settings.settings import Settings, load_settings

PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"
PROVIDER_KEY = "a1b2c3d4e5f6a7b8c9d0"
ENV = {
    "ENVIRONMENT": "development",
    "LOG_FORMAT": "json",
    "DATABASE_URL": "postgresql://sluice:hunter2hunter2@db/sluice",
    "REDIS_URL": "redis://:correct%20horse@redis:6379/0",
    "ETHEREUM_RPC_URLS": f"https://node.example/v2/{PROVIDER_KEY},https://b.example/?key={PROVIDER_KEY}2&chain=ethereum",
    "BSC_RPC_URLS": (
        "https://anna:red%2Cbicycle@node.example#X-Api-Key=green%20tractor/1,https://blueplane@b.example,https://c:tea@c.example"
    ),
    "WALLET_MNEMONIC": PHRASE,
}
SECRETS = [
    "hunter2hunter2",
    "correct%20horse",
    "correct horse",
    PROVIDER_KEY,
    "red%2Cbicycle",
    "red,bicycle",
    "green%20tractor/1",
    "green tractor/1",
    "blueplane",
    base64.b64encode(b"anna:red,bicycle").decode(),
    base64.b64encode(b"blueplane:").decode(),
    base64.b64encode(b"c:tea").decode(),
    PHRASE,
    DEVELOPMENT_SECRET_KEYS.partition(":")[2],
]


@pytest.fixture
def settings() -> Settings:
    return load_settings(ENV)


@pytest.fixture
def lines(settings: Settings) -> Iterator["Lines"]:
    """Configure logging as a process does and undo it after the test."""
    root, lines = logging.getLogger(), Lines()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook
    lines.configure(settings)
    yield lines
    root.handlers[:], root.level, logging.raiseExceptions = handlers, level, raising
    sys.excepthook, threading.excepthook = hooks
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


class Lines:
    """Reads the lines logged since the last reading."""

    def __init__(self) -> None:
        self._stream = io.StringIO()

    def configure(self, settings: Settings, process: str = "web") -> None:
        """Configure logging again and drop the lines of its start."""
        with contextlib.redirect_stderr(self._stream):
            log.configure(settings, process=process)
        self.start = self.text
        self._stream.truncate(0)
        self._stream.seek(0)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def last(self) -> dict[str, Any]:
        return self.all[-1]


@pytest.mark.parametrize(
    "name",
    ["secret", "SECRET_KEYS", "webhook_secret", "password", "wallet_passphrase", "mnemonic", "X-Signature", "signature",
     "Authorization", "token", "X-Token", "claim_token", "api_key", "private_key", "buyer_key", "set-cookie", "seed",
     "secret_box"],
)  # fmt: skip
def test_values_with_secret_names_are_redacted(name: str) -> None:
    shown = Redactor()({name: "0x" + "ab" * 32, "deep": [{name: ["x1x2x3", {"y": b"z1z2z3"}]}]})
    assert shown == {name: "***", "deep": [{name: "***"}]}


@pytest.mark.parametrize(
    "name", ["public_id", "txid", "order_id", "idem_key", "address_public_key", "currency", "tokens"]
)
def test_values_with_ordinary_names_are_shown(name: str) -> None:
    assert Redactor()({name: "0x" + "ab" * 32}) == {name: "0x" + "ab" * 32}


def test_the_presence_of_a_secret_may_be_shown() -> None:
    assert Redactor()({"secret": None, "has_secret": True}) == {"secret": None, "has_secret": True}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://user:pass@db/sluice failed", "postgresql://***@db/sluice failed"),
        ("redis://:pass@host:1/0", "redis://***@host:1/0"),
        ("at https://token@host/x and https://u:p@host/y", "at https://***@host/x and https://***@host/y"),
        ("at https://host/x#X-Api-Key=abc/d, then", "at https://host/x#X-Api-Key=***, then"),
        ("connect: host=db password=hunter2 dbname=x", "connect: host=db password=*** dbname=x"),
        ("{'secret': 'sk_a b', 'a': 1}", "{'secret': ***, 'a': 1}"),
        ('{"api_key":"abc","a":1}', '{"api_key":***,"a":1}'),
        ("GET /x?api_key=abc&b=1", "GET /x?api_key=***&b=1"),
        ("private_key=0x" + "ab" * 32, "private_key=***"),
        ("Authorization: Bearer abcdefghijklmnop.qrs", "Authorization: ***"),
        ("used sk_" + "a" * 43 + ".", "used sk_***."),
        ("Error handling request /v1/claim/" + "a-Z_9" * 8 + "abc?x", "Error handling request /v1/claim/***?x"),
        (f"words: {PHRASE}!", "words: ***!"),
        (f"words: {PHRASE.split()}", "words: ['***']"),
        (PHRASE.replace(" ", "\n"), "***"),
        ("tx 0x" + "ab" * 32, "tx 0x" + "ab" * 32),
        ("pk_abcdefghijklmnopqrstuvwx", "pk_abcdefghijklmnopqrstuvwx"),
        (
            "The invoice was paid by mail@example.com: https://a/b@c",
            "The invoice was paid by mail@example.com: https://a/b@c",
        ),
    ],
)
def test_a_secret_is_recognised_by_its_shape(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


def test_the_settings_own_secrets_are_redacted_everywhere(settings: Settings) -> None:
    redactor = Redactor(secrets_of(settings))
    for secret in SECRETS:
        assert secret not in redactor.text(f"before{secret}after")


def test_names_in_provider_urls_are_not_redacted(settings: Settings) -> None:
    assert Redactor(secrets_of(settings)).text("chain ethereum, node.example, v2") == "chain ethereum, node.example, v2"


def test_secrets_in_objects_bytes_and_deep_values_are_redacted() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "Odd(password=hunter2)"

    deep: object = "redis://:hunter2@h"
    for _ in range(20):
        deep = {"a": [deep]}
    shown = json.dumps(
        Redactor()([Odd(), b"password=hunter2", ValueError("password=hunter2"), deep, {"redis://:hunter2@h": 1}])
    )
    assert "hunter2" not in shown


def test_a_value_that_contains_itself_is_cut() -> None:
    circle: list[object] = ["redis://:hunter2@h"]
    circle.append(circle)
    assert "hunter2" not in json.dumps(Redactor()(circle))


def test_a_long_text_is_redacted_before_it_is_cut() -> None:
    text = Redactor().text("x" * (TEXT_CHARS_MAX - 10) + " redis://:hunter2@host " + "y" * 100_000)
    assert "hunter2" not in text
    assert len(text) < TEXT_CHARS_MAX + 50


def test_hostile_text_is_redacted_in_little_time() -> None:
    for piece in ("a", "abc ", "://", "password=", "secret='", "sk_", "bearer ", "x@"):
        Redactor().text(piece * (200_000 // len(piece)))


def test_a_line_has_its_process_request_and_facts(lines: Lines) -> None:
    log.bind_request("0191-a")
    structlog.get_logger("api").info("invoice.created", order_id="7", secret="sk_x", url="redis://:hunter2@h")
    line = lines.last
    assert line | {"timestamp": "", "pid": 0} == {
        "process": "web",
        "pid": 0,
        "request_id": "0191-a",
        "event": "invoice.created",
        "level": "info",
        "logger": "api",
        "order_id": "7",
        "secret": "***",
        "url": "redis://***@h",
        "timestamp": "",
    }
    assert line["timestamp"].endswith("Z")


def test_a_new_request_drops_the_facts_of_the_last(lines: Lines) -> None:
    log.bind_request("one")
    structlog.contextvars.bind_contextvars(merchant_id="m")
    log.bind_request("two")
    structlog.get_logger().info("x")
    assert lines.last["request_id"] == "two"
    assert "merchant_id" not in lines.last


def test_lines_below_the_level_are_not_written(lines: Lines) -> None:
    structlog.get_logger().debug("x")
    logging.getLogger("dramatiq").debug("x")
    logging.getLogger("apscheduler.executors.default").info("x")
    assert lines.text == ""


def test_a_traceback_shows_neither_values_nor_secrets(lines: Lines, settings: Settings) -> None:
    def connect(url: str) -> None:
        raise ConnectionError(f"cannot reach {url}")

    try:
        connect(settings.database_url)
    except ConnectionError:
        structlog.get_logger().exception("db.failed", settings=settings)
        logging.getLogger("dramatiq.worker").exception("Failed to process %s with %r", settings.redis_url, ENV)
    assert [line["event"].split()[0] for line in lines.all] == ["db.failed", "Failed"]
    assert all("in connect" in line["exception"] for line in lines.all)
    for secret in SECRETS:
        assert secret not in lines.text


def test_handlers_installed_by_libraries_are_replaced(settings: Settings, lines: Lines) -> None:
    own, stream = logging.getLogger("gunicorn.error"), io.StringIO()
    own.addHandler(logging.StreamHandler(stream))
    own.propagate = False
    lines.configure(settings)
    own.error("redis://:hunter2@h")
    assert stream.getvalue() == ""
    assert lines.last["event"] == "redis://***@h"
    assert lines.last["logger"] == "gunicorn.error"


def test_uncaught_errors_are_logged_without_secrets(lines: Lines) -> None:
    def fail() -> None:
        raise RuntimeError("redis://:hunter2@h")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert lines.last["event"] == "process.uncaught"
    try:
        fail()
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)
    assert len(lines.all) == 2
    assert "hunter2" not in lines.text


def test_development_logs_its_unsafe_settings_at_every_start(settings: Settings, lines: Lines) -> None:
    assert [json.loads(line)["what"] for line in lines.start.splitlines()] == list(settings.warnings())


def test_a_command_does_not_log_unsafe_settings(settings: Settings, lines: Lines) -> None:
    lines.configure(settings, process="cli")
    assert lines.start == ""


def test_console_lines_are_readable_and_redacted(lines: Lines) -> None:
    lines.configure(load_settings({**ENV, "LOG_FORMAT": "console"}))
    try:
        raise ValueError("redis://:hunter2@h")
    except ValueError:
        structlog.get_logger().exception("failed", password="hunter2")
    assert "failed" in lines.text
    assert "ValueError: redis://***@h" in lines.text
    assert "hunter2" not in lines.text

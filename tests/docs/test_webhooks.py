"""docs/webhooks.md: its samples run, and distinguish our webhooks from forged ones; its numbers are the code's."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.invoices.states import INVOICE_EVENTS
from core.secrets.signing import sign_webhook
from core.webhooks.schemas import DeliveryPage, WebhookEndpoint, WebhookTrial
from models.webhooks.outbox import ATTEMPTS_MAX, DELAYS_S

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_of_the_shop"
BODY = '{"type":"payment","order_id":"ü"}'.encode()

Check = Callable[[str, str, str, bytes], bool]


def sample(language: str) -> str:
    matches = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(matches) == 1
    return str(matches[0])


def in_python(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    space: dict[str, Any] = {}
    exec(sample("python"), space)  # noqa: S102 - the sample is what is tested
    return bool(space["is_genuine"](secret, timestamp, signature, body))


def _elsewhere(program: str, switch: str, call: str, arguments: list[str]) -> bool:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return subprocess.run([path, switch, call, *arguments], capture_output=True, text=True, check=True).stdout == "yes"


def in_node(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    call = (
        sample("javascript")
        + "const [secret, timestamp, signature, body] = process.argv.slice(1);"
        + 'process.stdout.write(isGenuine(secret, timestamp, signature, Buffer.from(body, "hex")) ? "yes" : "no");'
    )
    return _elsewhere("node", "-e", call, [secret, timestamp, signature, body.hex()])


def in_php(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    call = sample("php").removeprefix("<?php\n") + (
        "echo is_genuine($argv[1], $argv[2], $argv[3], hex2bin($argv[4])) ? 'yes' : 'no';"
    )
    return _elsewhere("php", "-r", call, [secret, timestamp, signature, body.hex()])


@pytest.mark.parametrize("check", [in_python, in_node, in_php])
def test_each_sample_accepts_ours_and_nothing_else(check: Check) -> None:
    now = int(time.time())
    signature = sign_webhook(SECRET, now, BODY)
    assert check(SECRET, str(now), signature, BODY)
    old = now - 400
    for forged in (
        ("another", str(now), signature, BODY),
        (SECRET, str(now + 1), signature, BODY),
        (SECRET, str(now), signature, BODY + b" "),
        (SECRET, str(now), signature[:-1], BODY),
        (SECRET, str(now), "ü", BODY),
        (SECRET, "", signature, BODY),
        ("", str(now), sign_webhook("", now, BODY), BODY),
        (SECRET, str(old), sign_webhook(SECRET, old, BODY), BODY),
    ):
        assert not check(*forged)


def test_the_schedule_is_the_codes() -> None:
    text = PAGE[PAGE.index("repeated after") :]
    numbers = re.findall(r"\d+", text[: text.index(" seconds")])
    assert [int(number) for number in numbers] == list(DELAYS_S)
    assert ATTEMPTS_MAX == 12
    assert "twelve attempts" in PAGE


def test_every_invoice_event_is_listed() -> None:
    for event in INVOICE_EVENTS.values():
        assert f"| `{event}` |" in PAGE


def test_the_json_matches_the_apis_answers() -> None:
    answers = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    # An identifier that is cut short replaces any.
    whole = [text.replace("0190b3c6-…", "0190b3c6-7d20-7a11-8f6f-1a2b3c4d5e6f") for text in answers]
    registered, *others = map(msgspec.json.decode, whole)
    msgspec.convert(registered, WebhookEndpoint)
    for answer, kind in zip(others, (DeliveryPage, WebhookTrial), strict=True):
        assert answer.keys() == {"state", "result"}
        msgspec.convert(answer["result"], kind)

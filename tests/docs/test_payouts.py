"""docs/payouts.md: its samples are what the gateway takes and answers; its tables name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from core.errors import ERRORS
from core.http.requests import read_request
from core.payouts.schemas import CreatedPayout, CreatePayout, MassPayout, MassResult, PayoutConversion
from core.payouts.states import SHOWN, payout_event

PAGE = (Path(__file__).parents[2] / "docs" / "payouts.md").read_text(encoding="utf-8")
SAMPLES: list[Any] = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]


def test_every_sample_is_one() -> None:
    order, made, converted, many, result = SAMPLES

    asked = read_request(CreatePayout, order, own_hosts=frozenset())
    answer = msgspec.convert(made["result"], CreatedPayout)
    assert (asked.order_id, asked.amount) == (answer.order_id, answer.amount)
    msgspec.convert(converted["convert"], PayoutConversion)
    items = read_request(MassPayout, many, own_hosts=frozenset()).payouts
    assert [item["order_id"] for item in items] == [
        item.order_id for item in msgspec.convert(result["result"], MassResult).items
    ]


def test_every_code_exists_with_its_status() -> None:
    named = set(re.findall(r"`((?:payout|compliance|gateway)\.[a-z_]+)`", PAGE))
    events = {payout_event(status) for status in SHOWN}

    assert named - events <= ERRORS.keys()
    for code, status in re.findall(r"^\| `([a-z_.]+)` \| ([0-9]{3}) \|", PAGE, re.MULTILINE):
        assert ERRORS[code].status == int(status), code


def test_every_status_is_explained_with_its_events() -> None:
    explained = dict(re.findall(r"^\| `([a-z_]+)` \| (`payout\.[^|]+) \|", PAGE, re.MULTILINE))

    assert {word: set(re.findall(r"`([a-z_.]+)`", events)) for word, events in explained.items()} == {
        word: {payout_event(status) for status in SHOWN if SHOWN[status] == word} for word in SHOWN.values()
    }

"""docs/timeline.md: its samples are what the gateway takes and answers; its tables name all that there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec

from core.http.requests import read_request
from core.invoices.schemas import PaymentLookup
from core.invoices.timeline_schemas import EVENTS, Timeline, TimelineDetail

PAGE: Final = (Path(__file__).parents[2] / "docs" / "timeline.md").read_text(encoding="utf-8")


def table(title: str) -> list[str]:
    """Return the first words of the rows under a heading."""
    rows = PAGE.partition(f"\n| {title} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([a-z]+)` \|", rows, re.MULTILINE)


def words(name: str) -> set[str]:
    """Return the values that a word of the detail may have."""
    hint = get_type_hints(TimelineDetail)[name]
    return {word for literal in get_args(hint) for word in get_args(literal)}


def test_the_samples_are_accepted_and_answered() -> None:
    asked, answered = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))

    body: Any = read_request(PaymentLookup, asked, own_hosts=frozenset())
    shown = msgspec.convert(answered["result"], Timeline)
    assert body.order_id
    assert [item.at for item in shown.items] == sorted(item.at for item in shown.items)


def test_the_tables_name_every_event_and_everything_that_is_waited_for() -> None:
    assert sorted(table("Event")) == sorted(EVENTS)
    assert {*table("`waiting_for`"), "rate"} == words("waiting_for")


def test_every_reason_is_documented() -> None:
    matches = set(re.findall(r"`([a-z]+)`", PAGE))

    assert words("stray_reason") | words("witness_reason") | (words("reason") - {"left_chain"}) <= matches

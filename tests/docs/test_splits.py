"""docs/splits.md: its samples are what the gateway takes and answers; its table and its figures are those in force."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from api.routes import splits
from core.errors import ERRORS
from core.http.requests import read_request
from core.merchants import split_schemas

PAGE: Final = (Path(__file__).parents[2] / "docs" / "splits.md").read_text(encoding="utf-8")
SAMPLES: Final[list[Any]] = [
    json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
]


def test_the_samples_are_accepted_and_answered() -> None:
    asked, made, wanted, sample = SAMPLES

    rule = read_request(split_schemas.AddRule, asked, own_hosts=frozenset())
    shown = msgspec.convert(made["result"], split_schemas.SplitRule)
    assert (rule.recipient_merchant_id, rule.percent, rule.title) == (
        shown.recipient_merchant_id,
        shown.percent,
        shown.title,
    )
    config = read_request(split_schemas.SetSplits, wanted, own_hosts=frozenset())
    answer = msgspec.convert(sample["result"], split_schemas.SplitConfig)
    assert (config.enabled, config.refund_hold_hours) == (answer.enabled, answer.refund_hold_hours)


def test_the_table_has_the_endpoints_codes_with_their_status() -> None:
    by_code = {
        code: int(status) for code, status in re.findall(r"^\| `([a-z0-9_.]+)` \| ([0-9]{3}) \|", PAGE, re.MULTILINE)
    }

    assert by_code == {error.code: ERRORS[error.code].status for e in splits.ENDPOINTS for error in e.own_errors()}


def test_the_bounds_are_those_in_force() -> None:
    assert f"at most {split_schemas.RULES_MAX} rules" in PAGE
    assert f"(`refund_hold_hours`, 0 to {split_schemas.HOLD_HOURS_MAX}, 0 at first)" in PAGE

"""docs/auto-withdraw.md: its samples are what the gateway takes and answers; its tables and figures are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from actors.payouts import withdrawing
from api.routes.payouts import auto_withdraw
from core.http.requests import read_request
from core.payouts.withdrawal_schemas import AutoWithdraw, SetAutoWithdraw
from models.payouts import withdrawal_walk

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "auto-withdraw.md").read_text(encoding="utf-8")


def test_the_samples_are_accepted_and_answered() -> None:
    asked, answered = (json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))

    body: Any = read_request(SetAutoWithdraw, asked, own_hosts=frozenset())
    [rule] = msgspec.convert(answered["result"], AutoWithdraw).items
    assert (body.currency, body.network, body.address, body.threshold) == (
        rule.currency, rule.network, rule.address, rule.threshold,
    )  # fmt: skip
    for text in re.findall(r"`(\{[^`]*\})`", PAGE):
        read_request(SetAutoWithdraw, json.loads(text), own_hosts=frozenset())
    assert set(re.findall(r"^\| `([a-z]+)` \| [^0-9]", PAGE, re.MULTILINE)) == set(SetAutoWithdraw.__struct_fields__)


def test_the_table_has_the_endpoints_codes_with_their_status() -> None:
    by_code = {
        code: int(status) for code, status in re.findall(r"^\| `([a-z_.]+)` \| ([0-9]{3}) \|", PAGE, re.MULTILINE)
    }

    (endpoint,) = auto_withdraw.ENDPOINTS
    assert by_code == {error.code: error.status for error in endpoint.own_errors()}


def test_the_figures_are_the_codes() -> None:
    decision = (DOCS / "decisions" / "auto-withdraw.md").read_text(encoding="utf-8")

    assert (withdrawing.WAIT_S, "five minutes later" in PAGE, "five minutes later" in decision) == (300, True, True)
    assert (withdrawal_walk.AGAIN_AFTER_S, "after ten minutes" in PAGE) == (600, True)
    assert (withdrawal_walk.AGAIN_AFTER_MAX_S, "up to a day" in PAGE) == (86_400, True)
    assert f"{withdrawing.LIMIT_PERCENT} percent" in PAGE
    assert f"{withdrawing.LIMIT_PERCENT} percent" in decision
    assert (withdrawal_walk.PAGE, "a thousand a second" in decision) == (1_000, True)

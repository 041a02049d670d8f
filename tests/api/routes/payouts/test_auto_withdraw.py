"""Withdrawal rules over HTTP: an invalid one is refused with its own code, and changes nothing."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.api.conftest import code_of
from tests.api.live import Live
from tests.models.payouts.builders import RECIPIENT

PATH: Final = "/v1/auto-withdraw"
RULE: Final = {"currency": "USDT", "network": "ethereum", "address": RECIPIENT, "threshold": "500"}
UNKNOWN, BAD_ADDRESS, BAD_THRESHOLD = (
    f"autowithdraw.{code}" for code in ("unknown_currency", "bad_address", "bad_threshold")
)


def rules(live: Live, body: object = None, **options: Any) -> Any:
    answer = live.post(PATH, {} if body is None else body, **options)
    assert answer.status_code == 200, answer.text
    return answer.json["result"]["items"]


def test_a_rule_is_set_by_one_key_and_read_by_another(live: Live) -> None:
    assert rules(live, RULE) == [RULE | {"enabled": True, "status": "active"}]

    assert rules(live, public_id="pk_payout") == [RULE | {"enabled": True, "status": "active"}]
    assert rules(live, public_id="pk_stranger") == []


NO_RULES: Final[dict[str, list[dict[str, Any]]]] = {
    UNKNOWN: [
        {"currency": ""},
        {"currency": None},
        {"currency": "usdt"},
        {"currency": "USDT\n"},
        {"currency": 5},
        {"currency": "x" * 5000},
        {"network": ""},
        {"network": "Ethereum"},
        {"network": "bitcoin"},
        {"network": ["ethereum"]},
    ],
    BAD_ADDRESS: [
        {"address": ""},
        {"address": None},
        {"address": 5},
        {"address": f" {RECIPIENT}"},
        {"address": f"{RECIPIENT}\r\n"},
        {"address": f"{RECIPIENT}\x00"},
        {"address": "\ud800"},
        {"address": "\u202e" + RECIPIENT},
        {"address": "<script>alert(1)</script>"},
        {"address": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"},
        {"address": "x" * 200},
    ],
    BAD_THRESHOLD: [
        {"threshold": ""},
        {"threshold": None},
        {"threshold": 500},
        {"threshold": 0.5},
        {"threshold": "5e2"},
        {"threshold": "-500"},
        {"threshold": "+500"},
        {"threshold": " 500"},
        {"threshold": "500\n"},
        {"threshold": "\u0665\u0660\u0660"},
        {"threshold": "NaN"},
        {"threshold": "500.1234567890123456789"},
        {"threshold": "500.1234567"},
        {"threshold": "0"},
        {"threshold": "0.000001"},
    ],
    "request.bad_field": [
        {"enabled": "yes"},
        {"enabled": 1},
    ],
}


@pytest.mark.parametrize("code", NO_RULES)
def test_an_invalid_rule_is_refused(live: Live, code: str) -> None:
    answers = [(change, live.post(PATH, RULE | change)) for change in NO_RULES[code]]

    assert [(change, answer.text) for change, answer in answers if answer.status_code == 200] == []
    assert {(answer.status_code, code_of(answer)) for _, answer in answers} == {(400, code)}
    assert rules(live) == []


def test_unknown_fields_are_ignored(live: Live) -> None:
    foreign = {"merchant_id": str(live.stranger), "set_by": "pk_stranger", "order_id": "autowithdraw:1", "uuid": "x"}

    assert rules(live, RULE | foreign) == [RULE | {"enabled": True, "status": "active"}]
    assert rules(live, public_id="pk_stranger") == []


def test_the_largest_amount_there_is_can_be_waited_for(live: Live) -> None:
    most = "9" * 30 + ".999999"

    assert rules(live, RULE | {"threshold": most})[0]["threshold"] == most

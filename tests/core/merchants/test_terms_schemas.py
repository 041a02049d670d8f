"""Requests about a merchant's terms are refused by field, with codes of their own."""

from __future__ import annotations

from typing import Any

import pytest

from core.http.requests import Request
from core.merchants.terms_schemas import METHODS_MAX, MethodName, SetAccepted, SetAccuracy, SetDiscount
from tests.core.http.test_requests import read, refused

ETHER = {"currency": "ETH", "network": "ethereum"}
NOT_NUMBERS: list[Any] = ["5", True, [], {}, float("nan"), float("inf"), 10**400]


@pytest.mark.parametrize(
    "accepted",
    ["", "ETH", 1, True, {}, ETHER, ["ETH"], [1], [None], [[]], [{}], [{"network": "ethereum"}], [{"currency": None}],
     [{"currency": ""}], [{"currency": 1}], [ETHER | {"network": 1}], [ETHER | {"network": "a\x00"}], [ETHER, {}],
     [{"currency": "E" * 33}], [ETHER] * (METHODS_MAX + 1)],
)  # fmt: skip
def test_a_malformed_list_of_methods_is_refused(accepted: Any) -> None:
    assert refused(SetAccepted, {"accepted": accepted}).code == "accepted.unknown_method"


def test_a_list_may_be_given_empty_or_missing() -> None:
    named = read(SetAccepted, {"accepted": [ETHER | {"unknown": 1}, {"currency": "BNB", "network": None}]})

    assert named.accepted == [MethodName(currency="ETH", network="ethereum"), MethodName(currency="BNB")]
    assert len(read(SetAccepted, {"accepted": [ETHER] * METHODS_MAX}).accepted) == METHODS_MAX
    assert read(SetAccepted, {"accepted": []}).accepted == []
    assert read(SetAccepted, {}) == read(SetAccepted, {"accepted": None}) == SetAccepted()


@pytest.mark.parametrize("percent", [99.0001, -99.0001, 100, *NOT_NUMBERS])
def test_an_invalid_discount_is_refused(percent: Any) -> None:
    assert refused(SetDiscount, ETHER | {"discount_percent": percent}).code == "discount.bad_percent"


@pytest.mark.parametrize("percent", [99, -99, 0, 0.0001, -2.5])
def test_a_valid_discount_is_read(percent: float) -> None:
    assert read(SetDiscount, ETHER | {"discount_percent": percent}).discount_percent == percent


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"currency": 1}, "payment.unknown_currency"),
        ({"currency": "USDT", "network": 1}, "payment.unsupported_network"),
        ({"discount_percent": 5}, "payment.unknown_currency"),
        ({"discount_percent": 0, "network": "ethereum"}, "payment.unknown_currency"),
        ({"discount_percent": 5, "currency": ""}, "payment.unknown_currency"),
    ],
)
def test_a_discount_needs_a_coin(fields: dict[str, Any], code: str) -> None:
    assert refused(SetDiscount, fields).code == code


@pytest.mark.parametrize("percent", [5.0001, -0.1, *NOT_NUMBERS])
def test_an_invalid_tolerance_is_refused(percent: Any) -> None:
    assert refused(SetAccuracy, {"accuracy_percent": percent}).code == "accuracy.bad_percent"


@pytest.mark.parametrize("enabled", [1, 0, "true", "", [], 1.0])
def test_enabled_takes_json_booleans_only(enabled: Any) -> None:
    assert refused(SetAccuracy, {"enabled": enabled}).code == "request.bad_field"


@pytest.mark.parametrize("schema", [SetAccepted, SetDiscount, SetAccuracy])
def test_an_empty_body_is_a_read(schema: type[Request]) -> None:
    assert read(schema, {}) == schema()

"""Requests about payouts are refused by field, with the codes of the specification's table."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.http.requests import Request
from core.payouts.schemas import (
    MASS_MAX,
    CalculatePayout,
    CreatePayout,
    MassOrder,
    MassPayout,
    PayoutFeeSettings,
    PayoutHistory,
    PayoutLookup,
)
from tests.core.http.test_requests import read, refused

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
GOOD: dict[str, Any] = {
    "order_id": "payout-1",
    "amount": "25",
    "currency": "USDT",
    "network": "ethereum",
    "address": ADDRESS,
}
UUID = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in GOOD.items() if name not in names}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "payout.order_id_required"),
        (without("order_id"), "payout.order_id_required"),
        (GOOD | {"order_id": ""}, "payout.order_id_required"),
        (GOOD | {"order_id": None}, "payout.order_id_required"),
        (GOOD | {"order_id": 7}, "request.bad_field"),
        (GOOD | {"order_id": "x" * 256}, "request.bad_field"),
        (GOOD | {"order_id": "a\x00"}, "request.bad_field"),
        (GOOD | {"order_id": "\ud800"}, "request.bad_field"),
        (GOOD | {"order_id": "payoutlink:1"}, "request.bad_field"),
        (GOOD | {"order_id": "refund:1"}, "request.bad_field"),
        (GOOD | {"order_id": "autowithdraw:1"}, "request.bad_field"),
        (without("amount"), "payout.bad_amount"),
        (GOOD | {"amount": 25}, "payout.bad_amount"),
        (GOOD | {"amount": "1e3"}, "payout.bad_amount"),
        (GOOD | {"amount": "-1"}, "payout.bad_amount"),
        (GOOD | {"amount": " 1"}, "payout.bad_amount"),
        (GOOD | {"amount": "1\n"}, "payout.bad_amount"),
        (GOOD | {"amount": "\u0661"}, "payout.bad_amount"),
        (GOOD | {"amount": ""}, "payout.bad_amount"),
        (without("currency"), "payout.unknown_currency"),
        (GOOD | {"currency": 5}, "payout.unknown_currency"),
        (GOOD | {"network": 5}, "payout.asset_mismatch"),
        (GOOD | {"network": "x" * 33}, "payout.asset_mismatch"),
        (without("address"), "payout.no_destination"),
        (GOOD | {"address": None}, "payout.no_destination"),
        (GOOD | {"address": ""}, "payout.bad_address"),
        (GOOD | {"address": 5}, "payout.bad_address"),
        (GOOD | {"address": "0x\x00"}, "payout.bad_address"),
        (GOOD | {"address": "\udfff"}, "payout.bad_address"),
        (GOOD | {"address": "x" * 129}, "payout.bad_address"),
        (GOOD | {"memo": "x" * 121}, "payout.memo_too_long"),
        (GOOD | {"memo": 5}, "request.bad_field"),
        (GOOD | {"memo": "a\x00"}, "request.bad_field"),
        (GOOD | {"is_subtract": "yes"}, "request.bad_field"),
        (GOOD | {"is_subtract": 1}, "request.bad_field"),
        (GOOD | {"priority": "urgent"}, "request.bad_field"),
        (GOOD | {"source": "cabinet"}, "request.bad_field"),
        (GOOD | {"from_currency": 5}, "payout.from_currency_unsupported"),
        (GOOD | {"url_callback": "http://169.254.169.254/latest"}, "payout.bad_url_callback"),
        (GOOD | {"url_callback": "https://127.0.0.1/hook"}, "payout.bad_url_callback"),
        (GOOD | {"url_callback": "ftp://shop.example"}, "payout.bad_url_callback"),
        (GOOD | {"url_callback": "https://api.sluice.example/hook"}, "payout.bad_url_callback"),
        (GOOD | {"url_callback": 5}, "payout.bad_url_callback"),
    ],
)
def test_an_invalid_payout_is_refused(fields: dict[str, Any], code: str) -> None:
    assert refused(CreatePayout, fields).code == code


def test_optional_fields_may_be_empty_or_null() -> None:
    bare = read(CreatePayout, without("network"))

    for value in ("", None):
        names = ("network", "memo", "priority", "source", "from_currency", "url_callback")
        assert read(CreatePayout, GOOD | dict.fromkeys(names, value)) == bare
    assert (bare.is_subtract, bare.source, bare.priority) == (None, None, None)


def test_the_longest_memo_and_order_id_are_accepted() -> None:
    longest = read(CreatePayout, GOOD | {"memo": "\u00e9" * 120, "order_id": "x" * 255})

    assert (len(longest.memo or ""), len(longest.order_id)) == (120, 255)
    assert msgspec.json.decode(msgspec.json.encode(longest), type=CreatePayout) == longest


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"currency": "USDT"}, "payout.bad_amount"),
        ({"amount": "1"}, "payout.unknown_currency"),
        ({"amount": 1, "currency": "USDT"}, "payout.bad_amount"),
        ({"amount": "1", "currency": "USDT", "network": 1}, "payout.asset_mismatch"),
        ({"amount": "1", "currency": "USDT", "is_subtract": "no"}, "request.bad_field"),
    ],
)
def test_an_invalid_calculation_is_refused(fields: dict[str, Any], code: str) -> None:
    assert refused(CalculatePayout, fields).code == code


@pytest.mark.parametrize(
    ("schema", "fields", "code"),
    [
        (PayoutLookup, {}, "payout.no_lookup"),
        (PayoutLookup, {"uuid": "", "order_id": ""}, "payout.no_lookup"),
        (PayoutLookup, {"uuid": "x"}, "payout.bad_uuid"),
        (PayoutLookup, {"uuid": 5}, "payout.bad_uuid"),
        (PayoutLookup, {"order_id": 5}, "request.bad_field"),
        (PayoutHistory, {"cursor": 5}, "payout.bad_cursor"),
        (PayoutHistory, {"date_from": 5}, "payout.bad_date"),
        (PayoutHistory, {"date_to": "x" * 41}, "payout.bad_date"),
        (PayoutHistory, {"status": "approved"}, "request.bad_field"),
        (PayoutHistory, {"limit": "5"}, "request.bad_field"),
        (MassPayout, {}, "payout.empty_batch"),
        (MassPayout, {"payouts": []}, "payout.empty_batch"),
        (MassPayout, {"payouts": None}, "payout.empty_batch"),
        (MassPayout, {"payouts": GOOD}, "request.bad_field"),
        (MassPayout, {"payouts": [GOOD] * (MASS_MAX + 1)}, "payout.batch_too_large"),
        (MassPayout, {"payouts": [GOOD], "source": "x"}, "request.bad_field"),
        (PayoutFeeSettings, {"is_subtract": 1}, "request.bad_field"),
    ],
)
def test_other_invalid_requests_are_refused(schema: type[Request], fields: dict[str, Any], code: str) -> None:
    assert refused(schema, fields).code == code


def test_a_reserved_order_id_can_be_looked_up() -> None:
    assert read(PayoutLookup, {"order_id": "payoutlink:1"}).order_id == "payoutlink:1"
    assert read(PayoutLookup, {"uuid": UUID.upper()}).uuid == UUID.upper()


def test_items_of_a_mass_payout_are_not_judged_with_the_call() -> None:
    items: list[Any] = [7, None, {"order_id": 5}, "\ud800"] * 25

    assert read(MassPayout, {"payouts": items}).payouts == items


def test_an_empty_auto_withdrawal_request_is_a_read() -> None:
    assert read(PayoutFeeSettings, {}).is_subtract is None
    assert read(PayoutFeeSettings, {"is_subtract": False}).is_subtract is False


def test_the_message_of_a_mass_payout_carries_items_of_any_kind() -> None:
    order = MassOrder(source=None, items=['"\\ud800"'])

    assert msgspec.json.decode(msgspec.json.encode(order), type=MassOrder) == order

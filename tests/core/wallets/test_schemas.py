"""Requests about static wallets are refused by field, with the codes of the specification's table."""

from __future__ import annotations

from typing import Any

import pytest

from core.http.requests import Request
from core.wallets.schemas import OFFSET_MAX, BlockWallet, CreateWallet, WalletLookup, WalletQr
from tests.core.http.test_requests import read, refused

GOOD: dict[str, Any] = {"currency": "USDT", "network": "ethereum"}
UUID = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "wallet.unknown_currency"),
        (GOOD | {"currency": 1}, "wallet.unknown_currency"),
        (GOOD | {"currency": None}, "wallet.unknown_currency"),
        (GOOD | {"currency": ""}, "wallet.unknown_currency"),
        (GOOD | {"currency": "US\x00DT"}, "wallet.unknown_currency"),
        (GOOD | {"network": 1}, "wallet.unsupported_network"),
        (GOOD | {"network": ["ethereum"]}, "wallet.unsupported_network"),
        (GOOD | {"order_id": 7}, "request.bad_field"),
        (GOOD | {"order_id": "x" * 256}, "request.bad_field"),
        (GOOD | {"order_id": "a\x00"}, "request.bad_field"),
        (GOOD | {"order_id": "\ud800"}, "request.bad_field"),
        (GOOD | {"order_id": "refund:1"}, "request.bad_field"),
        (GOOD | {"order_id": "payoutlink:1"}, "request.bad_field"),
    ],
)
def test_an_invalid_wallet_is_refused(fields: dict[str, Any], code: str) -> None:
    assert refused(CreateWallet, fields).code == code


def test_optional_fields_may_be_empty_or_null() -> None:
    for value in ("", None):
        assert read(CreateWallet, {"currency": "ETH", "network": value, "order_id": value}) == CreateWallet(
            currency="ETH"
        )


@pytest.mark.parametrize(
    ("schema", "code"),
    [(BlockWallet, "wallet.no_address"), (WalletLookup, "wallet.no_address"), (WalletQr, "qr.no_address")],
)
def test_a_missing_address_is_refused(schema: type[Request], code: str) -> None:
    fields: dict[str, Any]
    for fields in ({}, {"address": ""}, {"address": None}, {"address": 5}, {"address": ["0x"]}):
        assert refused(schema, fields).code == code
    assert refused(schema, {"address": "0x\x00"}).code == "request.bad_field"


def test_a_request_blocks_by_default_and_unblocks_on_false() -> None:
    assert read(BlockWallet, {"address": "0x1"}).is_force_block is True
    assert read(BlockWallet, {"address": "0x1", "is_force_block": False}).is_force_block is False
    assert read(BlockWallet, {"address": "0x1", "is_force_block": None}).is_force_block is True
    for value in ("false", 0, []):
        assert refused(BlockWallet, {"address": "0x1", "is_force_block": value}).code == "request.bad_field"


@pytest.mark.parametrize("uuid", ["x", UUID[:-1], UUID + "\n", "{" + UUID + "}", 5, ["x"]])
def test_a_malformed_uuid_is_refused_even_with_an_address(uuid: object) -> None:
    assert refused(WalletLookup, {"uuid": uuid, "address": "0x1"}).code == "wallet.bad_uuid"


def test_a_lookup_takes_uuid_or_address() -> None:
    assert read(WalletLookup, {"uuid": UUID, "address": ""}).address is None
    assert read(WalletLookup, {"uuid": "", "address": "0x1"}).uuid is None


@pytest.mark.parametrize("offset", [-1, OFFSET_MAX + 1, "1", 1.5])
def test_an_invalid_offset_is_refused(offset: object) -> None:
    assert refused(WalletLookup, {"address": "0x1", "offset": offset}).code == "request.bad_field"

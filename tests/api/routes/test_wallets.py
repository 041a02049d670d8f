"""Static wallets over HTTP, with the real actors behind the API: every code, and who may see whose."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from actors import context
from api.app import create_app
from core.invoices.schemas import Image
from core.wallets.schemas import Wallet, WalletBlock, WalletInfo
from models.db.base import execute
from tests.api.conftest import NOW, Client, FakeCaller, FakeQueues, Keys, code_of, make_settings
from tests.api.live import LocalCaller
from tests.api.rows import CREATED, UNIT, add_deposit, add_invoice, add_merchant
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import begin_scans

USDT: dict[str, Any] = {"currency": "USDT", "network": "ethereum"}
UNKNOWN = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


@pytest.fixture
def merchant_id(keys: Keys, database: str) -> uuid.UUID:
    """The merchant of the client's keys; the key pk_other belongs to another one."""
    merchant_id = add_merchant()
    keys.add("pk_unified", "unified", merchant_id)
    keys.add("pk_other", "unified", add_merchant("Other"))
    context.configure(make_settings(DATABASE_URL=database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY))
    begin_scans()
    add_chunk(0)
    return merchant_id


@pytest.fixture
def shop(merchant_id: uuid.UUID, queues: FakeQueues, keys: Keys) -> Client:
    del merchant_id
    settings = make_settings()
    return Client(create_app(settings, caller=LocalCaller(), queues=queues, find_key=keys.find, now=lambda: NOW))


def made(client: Client, body: dict[str, Any] = USDT, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = client.post("/v1/wallet", body, **options).json["result"]
    return result


def test_a_wallet_is_created_once_and_shown_by_the_specification(shop: Client) -> None:
    first = shop.post("/v1/wallet", USDT | {"order_id": "customer-1"})

    assert first.status_code == 200
    assert first.json["state"] == 0
    wallet = msgspec.convert(first.json["result"], Wallet)
    assert (wallet.currency, wallet.network, wallet.order_id, wallet.url) == ("USDT", "ethereum", "customer-1", "")
    assert made(shop, USDT | {"order_id": "customer-1"}) == first.json["result"]
    assert made(shop)["uuid"] != wallet.uuid
    assert made(shop, {"currency": "ETH"})["network"] == "ethereum"


def test_a_replay_is_marked_and_a_key_with_another_body_is_refused(shop: Client) -> None:
    key = {"Idempotency-Key": "k"}
    first = shop.post("/v1/wallet", USDT, headers=key)
    again = shop.post("/v1/wallet", USDT, headers=key)
    other = shop.post("/v1/wallet", USDT | {"order_id": "x"}, headers=key)

    assert "idempotent-replayed" not in first.headers
    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    assert (other.status_code, code_of(other)) == (409, "idempotency.key_reused")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("", {"currency": "XYZ", "network": "ethereum"}, 400, "wallet.unknown_currency"),
        ("", {"currency": "USD", "network": "ethereum"}, 400, "wallet.unknown_currency"),
        ("", {"currency": "KZT"}, 400, "wallet.unknown_currency"),
        ("", {}, 400, "wallet.unknown_currency"),
        ("", {"currency": "USDT"}, 400, "wallet.no_network"),
        ("", {"currency": "USDT", "network": ""}, 400, "wallet.no_network"),
        ("", {"currency": "USDT", "network": "dogecoin"}, 400, "wallet.unsupported_network"),
        ("", {"currency": "ETH", "network": "base"}, 400, "wallet.unsupported_network"),
        ("", {"currency": "USDT", "network": "polygon"}, 400, "wallet.unsupported_network"),
        ("", {"currency": "USDT", "network": 5}, 400, "wallet.unsupported_network"),
        ("", USDT | {"order_id": "autowithdraw:1"}, 400, "request.bad_field"),
        ("/block", {}, 400, "wallet.no_address"),
        ("/block", {"address": ""}, 400, "wallet.no_address"),
        ("/block", {"address": 5}, 400, "wallet.no_address"),
        ("/block", {"address": "0x\u0000"}, 400, "request.bad_field"),
        ("/block", {"address": "0x1", "is_force_block": "no"}, 400, "request.bad_field"),
        ("/block", {"address": "0x" + "0" * 40}, 404, "wallet.static_not_found"),
        ("/block", {"address": "x" * 100_000, "is_force_block": False}, 404, "wallet.static_not_found"),
        ("/info", {}, 400, "wallet.no_address"),
        ("/info", {"uuid": "", "address": ""}, 400, "wallet.no_address"),
        ("/info", {"uuid": "x"}, 400, "wallet.bad_uuid"),
        ("/info", {"uuid": 7, "address": "0x1"}, 400, "wallet.bad_uuid"),
        ("/info", {"uuid": UNKNOWN}, 404, "wallet.static_not_found"),
        ("/info", {"address": "' OR 1=1 --"}, 404, "wallet.static_not_found"),
        ("/info", {"uuid": UNKNOWN, "offset": -1}, 400, "request.bad_field"),
        ("/qr", {}, 400, "qr.no_address"),
        ("/qr", {"address": None}, 400, "qr.no_address"),
        ("/qr", {"address": ["0x1"]}, 400, "qr.no_address"),
    ],
)
def test_every_refusal(shop: Client, path: str, body: dict[str, Any], status: int, code: str) -> None:
    answer = shop.post(f"/v1/wallet{path}", body)

    assert (answer.status_code, code_of(answer)) == (status, code)


def test_an_empty_pool_is_a_refusal_that_may_be_tried_again(shop: Client) -> None:
    execute("SELECT setval('address_claims_evm', 63)")

    answer = shop.post("/v1/wallet", USDT)

    assert (answer.status_code, code_of(answer)) == (503, "invoice.address_failed")


@pytest.mark.parametrize("path", ["", "/block", "/info", "/qr"])
def test_a_payout_key_reaches_no_wallet(client: Client, path: str) -> None:
    answer = client.post(f"/v1/wallet{path}", USDT | {"address": "0x1"}, public_id="pk_payout")

    assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")


@pytest.mark.parametrize("path", ["", "/block", "/info", "/qr"])
def test_wallets_need_a_signature(client: Client, caller: FakeCaller, path: str) -> None:
    answer = client.public_post(f"/v1/wallet{path}", USDT | {"address": "0x1"})

    assert answer.status_code == 401
    assert caller.calls == []


def test_another_merchants_wallet_answers_like_a_missing_one(shop: Client) -> None:
    theirs = made(shop, public_id="pk_other")
    missing = "0x" + "0" * 40

    for path, body, none in (
        ("/block", {"address": theirs["address"]}, {"address": missing}),
        ("/block", {"address": theirs["address"], "is_force_block": False}, {"address": missing}),
        ("/info", {"address": theirs["address"]}, {"address": missing}),
        ("/info", {"uuid": theirs["uuid"]}, {"uuid": UNKNOWN}),
    ):
        foreign, absent = (shop.post(f"/v1/wallet{path}", asked) for asked in (body, none))
        assert (foreign.status_code, foreign.content) == (404, absent.content)
    assert (
        shop.post("/v1/wallet/info", {"uuid": theirs["uuid"]}, public_id="pk_other").json["result"]["blocked"] is False
    )


def test_the_address_of_a_payment_is_no_wallet(shop: Client, merchant_id: uuid.UUID) -> None:
    add_invoice(merchant_id, address="0x52908400098527886E0F7030069857D2E4169EE7")

    answer = shop.post("/v1/wallet/block", {"address": "0x52908400098527886E0F7030069857D2E4169EE7"})

    assert code_of(answer) == "wallet.static_not_found"


def test_to_block_and_to_unblock(shop: Client) -> None:
    wallet = made(shop)
    expected = {"uuid": wallet["uuid"], "address": wallet["address"]}

    for body, blocked in (({}, True), ({"is_force_block": False}, False), ({"is_force_block": True}, True)):
        answer = shop.post("/v1/wallet/block", {"address": wallet["address"].lower()} | body).json["result"]
        msgspec.convert(answer, WalletBlock)
        assert answer == expected | {"blocked": blocked}
        assert shop.post("/v1/wallet/info", {"uuid": wallet["uuid"]}).json["result"]["blocked"] is blocked


def test_info_shows_deposits_newest_first(shop: Client, merchant_id: uuid.UUID) -> None:
    wallet = made(shop)
    came = {"owner_kind": "wallet", "stray_reason": None}
    wallet_id = uuid.UUID(wallet["uuid"])
    add_deposit(merchant_id, wallet_id, **came, status="credited", seen_at=CREATED.replace(hour=1))
    add_deposit(merchant_id, wallet_id, **came, ordinal="1", amount_units=UNIT // 2, seen_at=CREATED.replace(hour=2))
    add_deposit(merchant_id, wallet_id, **came, network="bsc", ordinal="2")

    by_uuid = shop.post("/v1/wallet/info", {"uuid": wallet["uuid"].upper()}).json["result"]
    by_address = shop.post("/v1/wallet/info", {"address": wallet["address"]}).json["result"]

    msgspec.convert(by_uuid, WalletInfo)
    assert by_uuid == by_address
    assert {name: by_uuid[name] for name in wallet} == wallet
    one = {"txid": "0x" + "ab" * 32, "currency": "USDC"}
    assert by_uuid["deposits"] == [
        one | {"amount": "5", "status": "blocked", "at": "2026-01-31T12:00:00.123Z", "network": "bsc"},
        one | {"amount": "0.5", "status": "blocked", "at": "2026-01-31T02:00:00.123Z"},
        one | {"amount": "5", "status": "credited", "at": "2026-01-31T01:00:00.123Z"},
    ]


def test_a_uuid_has_priority_over_an_address(shop: Client) -> None:
    first, second = made(shop), made(shop, USDT | {"order_id": "x"})

    answer = shop.post("/v1/wallet/info", {"uuid": first["uuid"], "address": second["address"]})

    assert answer.json["result"]["uuid"] == first["uuid"]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [({}, 50), ({"limit": 0}, 50), ({"limit": 201}, 50), ({"limit": 3}, 3), ({"limit": 200}, 55),
     ({"limit": 10, "offset": 50}, 5), ({"offset": 55}, 0)],
)  # fmt: skip
def test_deposits_come_in_pages(shop: Client, merchant_id: uuid.UUID, asked: dict[str, int], shown: int) -> None:
    wallet = made(shop)
    for number in range(55):
        add_deposit(merchant_id, uuid.UUID(wallet["uuid"]), owner_kind="wallet", stray_reason=None, ordinal=str(number))

    deposits = shop.post("/v1/wallet/info", {"uuid": wallet["uuid"]} | asked).json["result"]["deposits"]

    assert len(deposits) == shown


@pytest.mark.parametrize("text", ["0x52908400098527886E0F7030069857D2E4169EE7", "any text, ü", "\u202e<script>"])
def test_any_text_has_a_qr_code(shop: Client, text: str) -> None:
    answer = shop.post("/v1/wallet/qr", {"address": text}).json["result"]

    assert msgspec.convert(answer, Image).image.startswith("data:image/png;base64,")


def test_a_text_that_no_code_holds_has_an_empty_image(shop: Client) -> None:
    assert shop.post("/v1/wallet/qr", {"address": "x" * 500_000}).json == {"state": 0, "result": {"image": ""}}


def test_fields_that_the_caller_must_not_set_are_ignored(shop: Client, keys: Keys) -> None:
    body = USDT | {"uuid": UNKNOWN, "address": "0x1", "blocked": True, "fee_ppm": 0,
                   "merchant_id": str(keys.rows["pk_other"].merchant_id)}  # fmt: skip

    wallet = made(shop, body)

    assert wallet["uuid"] != UNKNOWN
    assert json.dumps(wallet) == json.dumps(made(shop))

"""Transfers over HTTP with the real actor behind: every code, and which repeats are known again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import msgspec
import pytest
from falcon import testing

from actors import context
from api.app import create_app
from api.http.dispatch import SIGNATURE_KEY
from api.routes import ENDPOINTS
from core.merchants.transfer_schemas import Transferred
from core.secrets.signing import sign_request
from models.db import base
from models.db.base import one, rows
from models.ledger.ledger import AVAILABLE
from models.payouts import freezes
from tests.api.conftest import NOW, SECRET, Client, FakeCaller, FakeQueues, Keys, code_of, make_settings
from tests.api.live import LocalCaller
from tests.models.builders import USDT, assert_sound
from tests.models.ledger.figures import balances_of
from tests.models.payouts.held import funded

PATH = "/v1/transfer/to-personal"
FIVE: dict[str, Any] = {"amount": "5", "currency": "USDT"}
LATER = {"timestamp": str(NOW + 1)}


@pytest.fixture
def shop(keys: Keys, database: str) -> Iterator[UUID]:
    """A merchant with 100 USDT and a key of every kind, and a second unified one."""
    merchant_id = funded()
    for public_id, kind in (("pk_unified", "unified"), ("pk_second", "unified"), ("pk_payout", "payout")):
        keys.add(public_id, kind, merchant_id)  # type: ignore[arg-type]
    context.configure(make_settings(DATABASE_URL=database))
    yield merchant_id
    assert_sound()


@pytest.fixture
def desk(shop: UUID, queues: FakeQueues, keys: Keys) -> Client:
    del shop
    return Client(create_app(make_settings(), caller=LocalCaller(), queues=queues, find_key=keys.find, now=lambda: NOW))


def balance_of(answer: testing.Result) -> str:
    return msgspec.convert(answer.json["result"], Transferred).personal_balance


def test_a_transfer_is_made_and_shown_by_the_specification(desk: Client) -> None:
    answer = desk.post(PATH, FIVE | {"order_id": "t-1"})

    assert (answer.status_code, answer.json["state"]) == (200, 0)
    assert answer.json["result"] == {
        "currency": "USDT", "amount": "5", "direction": "to_personal", "personal_balance": "5",
    }  # fmt: skip
    assert "idempotent-replayed" not in answer.headers


def test_the_very_same_request_moves_money_once(desk: Client, shop: UUID) -> None:
    first, again = desk.post(PATH, FIVE), desk.post(PATH, FIVE)

    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    assert balances_of(shop) == {AVAILABLE: 95 * USDT}


def test_a_newly_signed_request_is_another_request(desk: Client, shop: UUID) -> None:
    answers = [
        desk.post(PATH, FIVE),
        desk.post(PATH, FIVE, **LATER),
        desk.post(PATH, FIVE, public_id="pk_second"),
        desk.post(PATH, FIVE | {"unknown": 1}),
    ]

    assert [balance_of(answer) for answer in answers] == ["5", "10", "15", "20"]
    assert balances_of(shop) == {AVAILABLE: 80 * USDT}


def test_a_refused_request_is_not_remembered(desk: Client, shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")
    assert code_of(desk.post(PATH, FIVE)) == "payout.frozen"
    freezes.unfreeze("merchant", str(shop))

    assert balance_of(desk.post(PATH, FIVE)) == "5"


def test_a_key_decides_where_there_is_one(desk: Client) -> None:
    first = desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"})
    with_another_key = desk.post(PATH, FIVE, headers={"Idempotency-Key": "k2"}, timestamp=str(NOW + 2))
    again = desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"}, **LATER)

    assert [balance_of(answer) for answer in (first, with_another_key, again)] == ["5", "10", "5"]
    assert again.headers["idempotent-replayed"] == "true"
    reused = desk.post(PATH, FIVE | {"amount": "6"}, headers={"Idempotency-Key": "k"})
    assert (reused.status_code, code_of(reused)) == (409, "idempotency.key_reused")


@pytest.mark.parametrize("first", [{}, {"Idempotency-Key": "k"}])
def test_a_captured_request_moves_nothing_under_whatever_key(desk: Client, shop: UUID, first: dict[str, str]) -> None:
    sent = desk.post(PATH, FIVE, headers=first)

    captured = [desk.post(PATH, FIVE, headers=headers) for headers in ({}, {"Idempotency-Key": "new"}, first)]

    assert [(answer.json, answer.headers["idempotent-replayed"]) for answer in captured] == [(sent.json, "true")] * 3
    assert balances_of(shop) == {AVAILABLE: 95 * USDT}


def test_a_captured_repetition_moves_nothing_either(desk: Client, shop: UUID) -> None:
    sent = desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"})
    again = desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"}, **LATER)

    captured = [desk.post(PATH, FIVE, headers=headers, **LATER) for headers in ({}, {"Idempotency-Key": "new"})]

    assert [answer.json for answer in (again, *captured)] == [sent.json] * 3
    assert balances_of(shop) == {AVAILABLE: 95 * USDT}


def test_a_captured_request_that_was_refused_took_no_key(desk: Client, shop: UUID) -> None:
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")
    assert code_of(desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"})) == "payout.frozen"
    freezes.unfreeze("merchant", str(shop))

    assert balance_of(desk.post(PATH, FIVE, headers={"Idempotency-Key": "k"})) == "5"
    reused = desk.post(PATH, FIVE | {"amount": "6"}, headers={"Idempotency-Key": "k"})
    assert code_of(reused) == "idempotency.key_reused"


def test_an_order_id_decides_whatever_key_or_signature_it_comes_with(desk: Client, shop: UUID) -> None:
    order = FIVE | {"order_id": "t-1"}
    first = desk.post(PATH, order)
    others = [
        desk.post(PATH, order, **LATER),
        desk.post(PATH, order | {"amount": "77"}),
        desk.post(PATH, order, headers={"Idempotency-Key": "k"}),
        desk.post(PATH, order, public_id="pk_payout"),
    ]

    assert [answer.json for answer in others] == [first.json] * 4
    assert balances_of(shop) == {AVAILABLE: 95 * USDT}


def test_the_same_request_many_times_at_once_moves_money_once(desk: Client, shop: UUID) -> None:
    def ask(_: int) -> testing.Result:
        try:
            return desk.post(PATH, FIVE)
        finally:
            base.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))

    refused = [answer for answer in answers if answer.status_code != 200]
    assert {code_of(answer) for answer in refused} <= {"idempotency.in_progress"}
    assert {balance_of(answer) for answer in answers if answer not in refused} == {"5"}
    assert balances_of(shop) == {AVAILABLE: 95 * USDT}


def test_no_header_makes_the_key_of_a_signature(desk: Client, shop: UUID) -> None:
    desk.post(PATH, FIVE)
    ((stored,),) = rows("SELECT idem_key FROM calls WHERE idem_key IS NOT NULL")
    signature = sign_request(SECRET, str(NOW), "POST", PATH, json.dumps(FIVE).encode())
    assert stored == f"{SIGNATURE_KEY}pk_unified:{signature}"

    # A server trims the beginning of a header; the rest is a key like any other. Nor is a line feed allowed inside.
    assert balance_of(desk.post(PATH, FIVE, headers={"Idempotency-Key": stored}, **LATER)) == "10"
    forged = desk.post(PATH, FIVE, headers={"Idempotency-Key": f"k{stored}"})
    assert (forged.status_code, code_of(forged)) == (400, "idempotency.bad_key")
    assert balances_of(shop) == {AVAILABLE: 90 * USDT}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"currency": "XYZ"}, "transfer.unknown_currency"),
        ({"currency": None}, "transfer.unknown_currency"),
        ({"amount": "-1"}, "transfer.bad_amount"),
        ({"amount": 5}, "transfer.bad_amount"),
        ({"amount": "1e3"}, "transfer.bad_amount"),
        ({"amount": "0.0000001"}, "transfer.bad_amount"),
        ({"amount": "0"}, "transfer.bad_amount"),
        ({"amount": "100.1"}, "personal.insufficient"),
        ({"order_id": "refund:1"}, "request.bad_field"),
        ({"order_id": "x" * 256}, "request.bad_field"),
    ],
)
def test_an_impossible_transfer_is_refused_by_its_code(
    desk: Client, shop: UUID, body: dict[str, Any], code: str
) -> None:
    answer = desk.post(PATH, FIVE | body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert one("SELECT count(*) FROM personal_transfers") == (0,)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_a_payment_key_moves_nothing(desk: Client) -> None:
    answer = desk.post(PATH, FIVE, public_id="pk_payment")

    assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")


# The flag by itself -------------------------------------------------------------------------------------------------


def test_an_endpoint_may_know_signatures_and_ignore_keys(
    caller: FakeCaller, queues: FakeQueues, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_transfers = next(endpoint for endpoint in ENDPOINTS if endpoint.path == PATH)
    monkeypatch.setattr("api.app.ENDPOINTS", (dataclasses.replace(of_transfers, creates=False),))
    client = Client(create_app(make_settings(), caller=caller, queues=queues, find_key=keys.find, now=lambda: NOW))

    sent = [client.post(PATH, FIVE, headers=headers) for headers in ({}, {"Idempotency-Key": ""})]
    sent.append(client.post(PATH, FIVE, headers={"Idempotency-Key": "k"}, **LATER))

    assert [answer.status_code for answer in sent] == [200, 200, 200]
    first, second, third = [called.info.idem_key for called in caller.calls]
    assert first == second != third
    assert first is not None
    assert first.startswith(SIGNATURE_KEY)


def test_other_endpoints_know_no_signatures(client: Client, caller: FakeCaller) -> None:
    client.post("/v1/payment", {"amount": "10", "currency": "USD"})
    client.post("/v1/wallet/block", {"address": "0x" + "0" * 40})

    assert [called.info.idem_key for called in caller.calls] == [None, None]

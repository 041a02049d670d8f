"""Batches over HTTP: taken whole or not at all, read by their merchant, results as they were stored."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest
from falcon import testing

from actors.batches import ticks
from actors.queue.merchant_limits import Shares
from core.batches.schemas import ITEMS_MAX, BatchCreated, BatchInfo
from models.db.base import execute, one, rows
from tests.api.conftest import Client, FakeCaller, code_of
from tests.api.live import Live

PAYMENT: Final = {"amount": "10", "currency": "USD", "order_id": "order-1"}
PATHS: Final = {
    "/v1/payment/batch": ("payments", "payment", "create_payment_batch", "invoices"),
    "/v1/payout/batch": ("payouts", "payout", "create_payout_batch", "payouts"),
    "/v1/refund/batch": ("refunds", "refund", "create_refund_batch", "payouts"),
}
of_each = pytest.mark.parametrize("path", PATHS)


@pytest.fixture(autouse=True)
def _fresh_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticks, "_round", ticks._Round())


def body_of(path: str, items: list[Any], **more: Any) -> dict[str, Any]:
    return {PATHS[path][0]: items} | more


def take(live: Live, items: list[Any], path: str = "/v1/payment/batch", **more: Any) -> str:
    answer = live.post(path, body_of(path, items, **more))
    assert answer.status_code == 200, answer.text
    return str(answer.json["result"]["batch_id"])


def read(live: Live, batch_id: str, **more: Any) -> Any:
    result = live.post("/v1/batch/info", {"batch_id": batch_id} | more).json["result"]
    msgspec.convert(result, BatchInfo)
    return result


@of_each
def test_a_batch_goes_to_its_actor_with_its_author(client: Client, caller: FakeCaller, path: str) -> None:
    caller.result = {"batch_id": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d", "kind": "payment", "count": 2, "status": "x"}

    answer = client.post(path, body_of(path, [PAYMENT, 5], on_error="stop"), headers={"Idempotency-Key": "k"})

    assert answer.json == {"state": 0, "result": caller.result}
    assert (caller.last.actor, caller.last.queue) == PATHS[path][2:]
    assert caller.last.info.idem_key == "k"
    assert caller.last.info.principal_id == "pk_unified"
    assert caller.last.payload == {
        "on_error": "stop",
        "items": [json.dumps(PAYMENT, separators=(",", ":")), "5"],
        "order_ids": ["order-1", ""],
    }


@of_each
def test_batches_that_move_money_need_a_payout_key(client: Client, caller: FakeCaller, path: str) -> None:
    able, unable = ("pk_payment", "pk_payout") if path == "/v1/payment/batch" else ("pk_payout", "pk_payment")

    assert client.post(path, body_of(path, [PAYMENT]), public_id=able).status_code == 200
    assert code_of(client.post(path, body_of(path, [PAYMENT]), public_id=unable)) == "merchant.wrong_key_kind"
    assert len(caller.calls) == 1


@of_each
def test_a_batch_is_taken_whatever_its_items_are(live: Live, path: str) -> None:
    """Half a surrogate, a number that no column holds, and no object at all: each is its own item's error, later."""
    text = f'{{"{PATHS[path][0]}":[{{"order_id":"\\ud800"}},{{"amount":{"9" * 400}}},1e400,null,"\\u0000",[[]]]}}'

    answer = live.client.signed(path, text.encode())

    result = answer.json["result"]
    msgspec.convert(result, BatchCreated)
    assert (result["kind"], result["count"], result["status"]) == (PATHS[path][1], 6, "pending")
    for _ in range(3):
        ticks.run_batches()
    done = read(live, result["batch_id"])
    assert (done["status"], done["succeeded"], done["failed"]) == ("completed", 0, 6)
    assert "gateway.internal_error" not in {item["error"]["code"] for item in done["items"]}


def test_the_largest_batch_is_taken_and_one_more_item_is_not(live: Live) -> None:
    batch_id = take(live, [PAYMENT] * ITEMS_MAX)

    assert read(live, batch_id, limit=1)["count"] == ITEMS_MAX
    assert len(read(live, batch_id)["items"]) == ITEMS_MAX
    refused = live.post("/v1/payment/batch", {"payments": [PAYMENT] * (ITEMS_MAX + 1)})
    assert code_of(refused) == "batch.too_large"
    assert rows("SELECT count(*) FROM batches") == [(1,)]


@of_each
def test_a_repeat_with_the_key_gives_the_first_answer(live: Live, path: str) -> None:
    answers: list[testing.Result] = [
        live.post(path, body_of(path, [PAYMENT, PAYMENT]), headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    other = live.post(path, body_of(path, [PAYMENT]), headers={"Idempotency-Key": "k"})

    assert answers[0].json == answers[1].json
    assert answers[1].headers["idempotent-replayed"] == "true"
    assert code_of(other) == "idempotency.key_reused"
    assert rows("SELECT (SELECT count(*) FROM batches), (SELECT count(*) FROM batch_items)") == [(1, 2)]


def test_a_batch_is_read_before_while_and_after_it_is_done(live: Live) -> None:
    batch_id = take(live, [PAYMENT, {"amount": "x", "order_id": "order-2"}], on_error="stop")
    before = read(live, batch_id)
    assert (before["status"], before["on_error"], before["kind"]) == ("pending", "stop", "payment")
    assert (before["count"], before["succeeded"], before["failed"], before["completed_at"]) == (2, 0, 0, None)
    waiting = {"index": 0, "order_id": "order-1", "status": "pending", "result": None, "error": None}
    assert before["items"][0] == waiting

    ticks.run_batches()

    after = read(live, batch_id)
    assert (after["status"], after["succeeded"], after["failed"]) == ("completed", 1, 1)
    assert after["completed_at"] >= after["created_at"] == before["created_at"]
    made, failed = after["items"]
    payment = live.post("/v1/payment/info", {"order_id": "order-1"}).json["result"]
    assert made["result"] == {name: payment[name] for name in made["result"]}
    assert set(payment) - set(made["result"]) == {"revision", "refund_status", "refunds", "stray_deposits"}
    assert (made["status"], made["error"]) == ("success", None)
    assert (failed["status"], failed["order_id"], failed["result"]) == ("error", "order-2", None)
    assert (failed["error"]["code"], set(failed["error"])) == ("payment.bad_amount", {"code", "message"})


def test_a_large_answer_waits_for_its_merchant_s_turn(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(live, [PAYMENT] * 3)
    monkeypatch.setattr("api.routes.batches.PAGE_MAX", 2)
    turns: list[UUID | None] = []
    taken = Shares.taken

    def note(shares: Shares, merchant_id: UUID | None) -> AbstractContextManager[None]:
        if shares._most == 1:
            turns.append(merchant_id)
        return taken(shares, merchant_id)

    monkeypatch.setattr(Shares, "taken", note)
    read(live, batch_id)
    read(live, batch_id, limit=2)
    read(live, batch_id, offset=1)

    assert turns == [live.shop, None, None]


def test_items_are_read_by_the_page(live: Live) -> None:
    batch_id = take(live, [PAYMENT | {"order_id": f"o-{number}"} for number in range(5)])

    def shown(**page: int) -> list[int]:
        return [item["index"] for item in read(live, batch_id, **page)["items"]]

    assert shown(limit=2) == [0, 1]
    assert shown(limit=2, offset=3) == [3, 4]
    assert shown(offset=4) == [4]
    assert shown(offset=5) == []
    assert shown(limit=0) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("public_id", ["pk_unified", "pk_payment", "pk_payout"])
def test_any_key_of_the_merchant_reads_a_batch(live: Live, public_id: str) -> None:
    batch_id = take(live, [PAYMENT])

    assert live.post("/v1/batch/info", {"batch_id": batch_id.upper()}, public_id=public_id).status_code == 200


def test_a_result_is_passed_on_as_it_was_stored(live: Live) -> None:
    batch_id = take(live, [PAYMENT])
    execute("UPDATE batch_items SET status = 'success', result = %s", ('{"of": "another version",  "n": 1.50}',))

    answer = live.post("/v1/batch/info", {"batch_id": batch_id})

    assert '"result":{"of": "another version",  "n": 1.50}' in answer.text


def test_another_merchants_batch_is_as_absent_as_a_missing_one(live: Live) -> None:
    batch_id = take(live, [PAYMENT])

    answers = [
        live.post("/v1/batch/info", {"batch_id": batch_id}, public_id="pk_stranger"),
        live.post("/v1/batch/info", {"batch_id": str(UUID(int=7))}),
    ]

    assert {code_of(answer) for answer in answers} == {"batch.not_found"}
    assert answers[0].text == answers[1].text


def test_a_gateway_without_batches_refuses_new_ones_and_shows_old_ones(live: Live) -> None:
    batch_id = take(live, [PAYMENT])
    live.configure(BATCHES_ENABLED="0")

    refused = live.post("/v1/payment/batch", {"payments": [PAYMENT]})

    assert (refused.status_code, code_of(refused)) == (503, "batch.disabled")
    assert read(live, batch_id)["count"] == 1
    assert one("SELECT count(*) FROM batches") == (1,)

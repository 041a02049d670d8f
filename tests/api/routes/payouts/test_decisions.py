"""Approving and cancelling over HTTP with the real actors behind: every code; who approves is the key that signs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.queue.caller import CallInfo, CallReply
from api.app import create_app
from core.payouts.schemas import Payout
from models.ledger.ledger import AVAILABLE
from models.payouts import freezes
from tests.api.conftest import NOW, Client, FakeQueues, Keys, code_of, make_settings
from tests.api.live import LocalCaller
from tests.models.builders import USDT, assert_sound, merchant
from tests.models.ledger.figures import balances_of
from tests.models.payouts.held import DESTINATION, funded, payout, require_cosign, reread

APPROVE = "/v1/payout/approve"
CANCEL = "/v1/payout/cancel"
UNKNOWN = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


class KeylessCaller(LocalCaller):
    """Knows that a decision has no key."""

    def call(self, actor: str, *, queue: str, info: CallInfo, payload: bytes, wait_s: float | None = None) -> CallReply:
        assert info.idem_key is None
        return super().call(actor, queue=queue, info=info, payload=payload, wait_s=wait_s)


@pytest.fixture
def shop(keys: Keys, database: str) -> Iterator[UUID]:
    """A merchant with 100 USDT and its own keys, and another merchant."""
    merchant_id = funded()
    for public_id in ("pk_unified", "pk_second"):
        keys.add(public_id, "unified", merchant_id)
    keys.add("pk_payout", "payout", merchant_id)
    keys.add("pk_stranger", "unified", merchant())
    context.configure(make_settings(DATABASE_URL=database))
    yield merchant_id
    assert_sound()


@pytest.fixture
def desk(shop: UUID, queues: FakeQueues, keys: Keys) -> Client:
    del shop
    return Client(
        create_app(make_settings(), caller=KeylessCaller(), queues=queues, find_key=keys.find, now=lambda: NOW)
    )


def test_another_key_of_the_merchant_approves(desk: Client, shop: UUID) -> None:
    order = payout(shop, created_by="pk_unified")
    own = desk.post(APPROVE, {"uuid": str(order.id)})
    assert (own.status_code, code_of(own)) == (403, "payout.approver_is_creator")

    answer = desk.post(APPROVE, {"uuid": str(order.id)}, public_id="pk_second")

    assert (answer.status_code, answer.json["state"]) == (200, 0)
    shown = msgspec.convert(answer.json["result"], Payout)
    assert (shown.uuid, shown.status, shown.approval_required) == (str(order.id), "process", True)
    again = desk.post(APPROVE, {"uuid": str(order.id)}, public_id="pk_payout")
    assert (again.status_code, code_of(again)) == (409, "payout.not_pending")


def test_with_cosigning_two_others_approve(desk: Client, shop: UUID) -> None:
    require_cosign(shop)
    order = payout(shop, created_by="pk_unified", order_id="order-7")

    statuses = [
        desk.post(APPROVE, {"order_id": "order-7"}, public_id=public_id).json["result"]["status"]
        for public_id in ("pk_second", "pk_payout")
    ]

    assert statuses == ["awaiting_cosign", "process"]
    assert reread(order).status == "approved"


def test_a_payout_is_cancelled_by_any_payout_key(desk: Client, shop: UUID) -> None:
    order = payout(shop, created_by="pk_unified")

    answer = desk.post(CANCEL, {"order_id": order.order_id})

    shown = msgspec.convert(answer.json["result"], Payout)
    assert (shown.status, shown.is_final, shown.error) == ("cancel", True, None)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}
    assert code_of(desk.post(CANCEL, {"order_id": order.order_id})) == "payout.not_pending"


@pytest.mark.parametrize("path", [APPROVE, CANCEL])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "payout.no_lookup"),
        ({"uuid": "", "order_id": ""}, 400, "payout.no_lookup"),
        ({"uuid": "x"}, 400, "payout.bad_uuid"),
        ({"uuid": 7, "order_id": "order-7"}, 400, "payout.bad_uuid"),
        ({"order_id": 7}, 400, "request.bad_field"),
        ({"uuid": UNKNOWN, "order_id": "order-7"}, 404, "payout.not_found"),
        ({"order_id": "' OR 1=1 --"}, 404, "payout.not_found"),
    ],
)
def test_a_decision_without_a_payout_is_refused(
    desk: Client, shop: UUID, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    order = payout(shop, order_id="order-7")

    answer = desk.post(path, body)

    assert (answer.status_code, code_of(answer)) == (status, code)
    assert reread(order).status == "pending"


@pytest.mark.parametrize("path", [APPROVE, CANCEL])
def test_another_merchants_payout_answers_like_a_missing_one(desk: Client, shop: UUID, path: str) -> None:
    order = payout(shop)
    lookups = [({"uuid": str(order.id)}, {"uuid": UNKNOWN}), ({"order_id": order.order_id}, {"order_id": "nobody's"})]

    for theirs, nobodys in lookups:
        answers = [desk.post(path, body, public_id="pk_stranger") for body in (theirs, nobodys)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].text == answers[1].text
    assert reread(order).status == "pending"


@pytest.mark.parametrize("path", [APPROVE, CANCEL])
def test_a_payment_key_decides_nothing(desk: Client, shop: UUID, path: str) -> None:
    order = payout(shop)

    answer = desk.post(path, {"uuid": str(order.id)}, public_id="pk_payment")

    assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")


def test_a_frozen_payout_is_not_approved(desk: Client, shop: UUID, database: str, tmp_path: Path) -> None:
    order = payout(shop)
    freezes.freeze("network", "ethereum", reason="r", frozen_by="operator")
    frozen = desk.post(APPROVE, {"uuid": str(order.id)})
    freezes.unfreeze("network", "ethereum")
    (tmp_path / "deny").write_text(DESTINATION)
    context.configure(make_settings(DATABASE_URL=database, DENY_LIST=str(tmp_path / "deny")))

    blocked = desk.post(APPROVE, {"uuid": str(order.id)})

    assert (frozen.status_code, code_of(frozen)) == (409, "payout.frozen")
    assert (blocked.status_code, code_of(blocked)) == (403, "compliance.address_blocked")
    assert reread(order).status == "pending"

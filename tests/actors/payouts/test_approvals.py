"""Approves and cancels as calls: the signing key decides, each takes effect once, and the signer is notified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.payouts.approvals import approve_payout, cancel_payout
from actors.queue.caller import CallReply
from core.errors import ComplianceAddressBlocked, PayoutApproverIsCreator, PayoutNotFound, PayoutNotPending
from core.payouts.schemas import Payout
from models.ledger.ledger import AVAILABLE
from models.payouts.rows import PayoutRow
from models.queue.calls import CallInfo, ReplayedError
from tests.actors.asking import ask
from tests.actors.queue.workers import make_settings
from tests.models.builders import USDT, assert_sound, merchant
from tests.models.ledger.figures import balances_of
from tests.models.payouts.held import CREATOR, DESTINATION, approvers, funded, payout, require_cosign, reread
from tests.models.queue.builders import info


@pytest.fixture
def shop(database: str) -> Iterator[UUID]:
    context.configure(make_settings(database_url=database))
    yield funded()
    assert_sound()


def approve(of: PayoutRow, principal: str = "pk_second", call: CallInfo | None = None) -> dict[str, Any]:
    answer = ask(approve_payout, call or info(of.merchant_id, principal=principal), {"uuid": str(of.id)})
    return msgspec.to_builtins(msgspec.convert(answer, Payout))  # type: ignore[no-any-return]


def cancel(of: PayoutRow) -> dict[str, Any]:
    answer = ask(cancel_payout, info(of.merchant_id), {"order_id": of.order_id})
    return msgspec.to_builtins(msgspec.convert(answer, Payout))  # type: ignore[no-any-return]


def test_an_approved_payout_is_returned_whole_and_notifies_the_signer(shop: UUID, rung: list[str]) -> None:
    order = payout(shop)
    rung.clear()

    answer = approve(order)

    assert (answer["uuid"], answer["status"], answer["is_final"]) == (str(order.id), "process", False)
    assert (answer["approval_required"], answer["commission"], answer["amount"]) == (True, "1", "10")
    assert rung == ["deliver_webhooks", "broadcast:ethereum"]


def test_the_first_of_two_approvals_notifies_no_signer(shop: UUID, rung: list[str]) -> None:
    require_cosign(shop)
    order = payout(shop)
    rung.clear()

    assert approve(order)["status"] == "awaiting_cosign"
    assert rung == ["deliver_webhooks"]

    assert approve(order, "pk_third")["status"] == "process"
    assert rung[1:] == ["deliver_webhooks", "broadcast:ethereum"]


def test_the_key_that_signed_the_call_is_the_approver(shop: UUID, rung: list[str]) -> None:
    order = payout(shop)
    rung.clear()

    with pytest.raises(PayoutApproverIsCreator):
        approve(order, CREATOR)
    assert (reread(order).status, rung) == ("pending", [])

    approve(order)
    assert approvers(order) == {"pk_second"}


def test_a_cancelled_payout_is_returned_and_its_money_is_back(shop: UUID, rung: list[str]) -> None:
    order = payout(shop)
    rung.clear()

    answer = cancel(order)

    assert (answer["status"], answer["is_final"]) == ("cancel", True)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}
    assert rung == ["deliver_webhooks"]
    with pytest.raises(PayoutNotPending):
        cancel(order)


def test_a_redelivered_call_takes_effect_once(shop: UUID) -> None:
    order, call = payout(shop), info(shop, principal="pk_second")
    require_cosign(shop)
    approve(order, call=call)

    with pytest.raises(ReplayedError) as replay:
        approve(order, call=call)

    assert '"awaiting_cosign"' in (replay.value.response or "")
    assert approvers(order) == {"pk_second"}


@pytest.mark.parametrize("call", [approve_payout, cancel_payout])
def test_another_merchants_payout_is_not_found(shop: UUID, call: Callable[..., CallReply]) -> None:
    order, stranger = payout(shop), merchant()
    for lookup in ({"uuid": str(order.id)}, {"order_id": order.order_id}):
        with pytest.raises(PayoutNotFound):
            ask(call, info(stranger, principal="pk_stranger"), lookup)

    assert reread(order).status == "pending"


def test_the_deny_list_of_the_settings_is_checked(shop: UUID, database: str, tmp_path: Path) -> None:
    order = payout(shop)
    (tmp_path / "deny").write_text(DESTINATION)
    context.configure(make_settings(database_url=database, deny_list=tmp_path / "deny"))

    with pytest.raises(ComplianceAddressBlocked):
        approve(order)
    assert cancel(order)["status"] == "cancel"

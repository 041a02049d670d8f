"""Decides who may approve a payout, what an approval makes of it, and what a cancellation returns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from core.errors import (
    ComplianceAddressBlocked,
    PayoutApproverIsCreator,
    PayoutFrozen,
    PayoutNotFound,
    PayoutNotPending,
)
from core.payouts.deny_list import DenyList
from core.payouts.states import PayoutStatus
from models.db.base import close, execute, one, transaction
from models.deposits import crediting
from models.ledger.ledger import AVAILABLE, CUSTODY, DEBT, GATEWAY, PAYOUT_HELD, Account, Transfer, post
from models.outcomes import decisions as outcome_decisions
from models.outcomes import disowned, endings, payout_hooks
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow, find_by_order
from models.spends import signing_stops, unexplained, unread_departures
from tests.actors.payouts.withdrawals import add_key
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, expired, invoice, paid, settled
from tests.models.ledger.figures import balances_of, owes
from tests.models.payouts.held import (
    CREATOR,
    DESTINATION,
    approvers,
    as_signed,
    funded,
    payout,
    require_cosign,
    reread,
    webhook_events,
)
from tests.models.refunds.builders import FEE, refund, send_back, suspense
from tests.models.spends.departures import LESS, SENDER, a_departure
from tests.models.treasury.builders import pin_hot

NOBODY: Final = DenyList(None)
DECIDED: Final[tuple[PayoutStatus, ...]] = (
    "approved", "broadcasting", "sent", "confirmed", "failed", "cancelled",
)  # fmt: skip


@pytest.fixture
def shop(database: str) -> Iterator[UUID]:
    del database
    yield funded()
    assert_sound()


def approve(of: PayoutRow, principal: str = "pk_second", deny_list: DenyList = NOBODY) -> PayoutRow:
    with transaction():
        return outcome_decisions.approve(CATALOGUE, deny_list, of, principal=principal)


def cancel(of: PayoutRow) -> PayoutRow:
    with transaction():
        return outcome_decisions.cancel(CATALOGUE, of)


def cancel_stopped(of: PayoutRow) -> str:
    with transaction():
        return outcome_decisions.cancel_stopped(CATALOGUE, of, by="operator")


def test_a_pending_payout_is_approved_by_another(shop: UUID) -> None:
    order = payout(shop)

    after = approve(order)

    assert (after.status, reread(order).status) == ("approved", "approved")
    assert approvers(order) == {"pk_second"}
    assert webhook_events(order) == ["payout.pending", "payout.approved"]
    assert balances_of(shop) == {AVAILABLE: 89 * USDT, PAYOUT_HELD: 11 * USDT}


def test_neither_the_creator_nor_an_earlier_approver_approves(shop: UUID) -> None:
    require_cosign(shop)
    order = payout(shop)
    with pytest.raises(PayoutApproverIsCreator):
        approve(order, CREATOR)
    assert approve(order, "pk_second").status == "awaiting_cosign"

    for again in (CREATOR, "pk_second"):
        with pytest.raises(PayoutApproverIsCreator):
            approve(order, again)

    assert reread(order).status == "awaiting_cosign"
    assert approve(order, "user:7").status == "approved"
    assert approvers(order) == {"pk_second", "user:7"}
    assert webhook_events(order) == ["payout.pending", "payout.awaiting_cosign", "payout.approved"]


@pytest.mark.parametrize(
    ("approved_by", "status"),
    [(("pk_lost",), "approved"), (("pk_lost",), "awaiting_cosign"), (("pk_lost", "pk_third"), "approved")],
)
def test_approvals_of_a_revoked_key_do_not_count(shop: UUID, approved_by: tuple[str, ...], status: str) -> None:
    require_cosign(shop, is_required=status == "awaiting_cosign" or len(approved_by) > 1)
    order, other = payout(shop), payout(shop)
    add_key(shop, "pk_lost", is_revoked=True)
    for principal in approved_by:
        approve(order, principal)
    approve(other, "pk_second")
    assert reread(order).status == status

    assert disowned.cancel_all(CATALOGUE, "pk_second") == 0, "that key is in force"
    assert disowned.cancel_all(CATALOGUE, "pk_lost") == 1

    assert (reread(order).status, reread(order).error) == ("cancelled", disowned.UNAPPROVED)
    assert (balances_of(shop)[PAYOUT_HELD], reread(other).status == "cancelled") == (11 * USDT, False)
    assert disowned.cancel_all(CATALOGUE, "pk_lost") == 0


def test_one_other_key_releases_a_payout_created_as_awaiting_cosign(shop: UUID) -> None:
    require_cosign(shop)
    order = payout(shop, status="awaiting_cosign", is_approval_required=False)
    with pytest.raises(PayoutApproverIsCreator):
        approve(order, CREATOR)

    assert approve(order).status == "approved"


def test_a_payout_awaiting_cosign_still_waits_after_the_merchant_stops_requiring_it(shop: UUID) -> None:
    require_cosign(shop)
    order = payout(shop, status="awaiting_cosign")
    require_cosign(shop, is_required=False)
    with pytest.raises(PayoutApproverIsCreator):
        approve(order, CREATOR)

    assert approve(order).status == "approved"


@pytest.mark.parametrize("status", DECIDED)
def test_a_decided_payout_is_neither_approved_nor_cancelled(shop: UUID, status: PayoutStatus) -> None:
    order = payout(shop)
    execute("UPDATE payouts SET status = %s WHERE id = %s", (status, order.id))
    # The creator gets the error for decided payouts, and not that of being the creator. An approved payout may still be
    # cancelled; see tests.actors.payouts.test_stuck.
    decisions = [
        lambda: approve(order, CREATOR),
        lambda: approve(order),
        *([] if status == "approved" else [lambda: cancel(order)]),
    ]
    for decide in decisions:
        with pytest.raises(PayoutNotPending):
            decide()

    assert reread(order).status == status
    assert approvers(order) == set()
    execute("UPDATE payouts SET status = 'pending' WHERE id = %s", (order.id,))


def test_a_frozen_or_indebted_merchant_cannot_approve_but_may_cancel(shop: UUID) -> None:
    order, debt = payout(shop), Account(shop, DEBT, "USDT")
    freezes.freeze("merchant", str(shop), reason="r", frozen_by="operator")
    with pytest.raises(PayoutFrozen):
        approve(order)
    freezes.unfreeze("merchant", str(shop))
    custody = Account(GATEWAY, CUSTODY, "USDT", "ethereum")
    with transaction():
        post("owed", [Transfer(debt, custody, 4 * USDT)])
    with pytest.raises(PayoutFrozen):
        approve(order)
    assert approvers(order) == set()

    assert cancel(order).status == "cancelled"

    assert owes(shop) == 0
    assert balances_of(shop) == {AVAILABLE: 96 * USDT}
    with transaction():
        post("paid back", [Transfer(custody, Account(shop, AVAILABLE, "USDT"), 4 * USDT)])


@pytest.mark.parametrize("name", ["ethereum", ""])
def test_an_approved_payout_is_not_cancelled_while_its_network_is_frozen(shop: UUID, name: str) -> None:
    """After a restore, a signer whose rows are lost may have sent it."""
    approved, waits = payout(shop, status="approved"), payout(shop)
    freezes.freeze("network" if name else "all", name, reason="restored", frozen_by="operator")
    with pytest.raises(PayoutFrozen):
        cancel(approved)
    assert reread(approved).status == "approved"
    assert cancel(waits).status == "cancelled"

    freezes.unfreeze("network" if name else "all", name)
    assert cancel(approved).status == "cancelled"


def test_an_undecided_payout_is_not_cancelled_while_the_database_may_lack_its_approval(shop: UUID) -> None:
    """Once the scan has read on, an operator may cancel it if no departure can have paid it."""
    waits = payout(shop)
    assert signing_stops.watch("ethereum") is None
    execute("UPDATE database_marks SET timeline = '00000000'")
    with pytest.raises(PayoutFrozen):
        cancel(waits)
    assert "caught up" in cancel_stopped(waits)
    with transaction():
        signing_stops.stop("ethereum", reason="restored")
        unread_departures.note("ethereum", "coins", {"0xunread": ""}, height=8, block_hash="0x8")
    signing_stops.note_caught_up("ethereum")
    assert "no node has shown" in cancel_stopped(waits)
    execute("DELETE FROM unexplained_departures")
    freezes.freeze("all", reason="look into it", frozen_by="operator")
    assert "frozen" in cancel_stopped(waits)
    freezes.unfreeze("all")
    new = a_departure(recipient=DESTINATION, currency="USDT", contract="0xtoken", decimals=6, token_units=10**7)
    with transaction():
        unexplained.note(new)
    signing_stops.note_caught_up("ethereum")
    assert "0xlost may have paid it" in cancel_stopped(waits)
    execute(LESS)
    pin_hot(address=SENDER)
    execute("INSERT INTO spend_accounts (network, sender, next_slot) VALUES ('ethereum', %s, 5)", (SENDER,))
    assert "no scan has shown" in cancel_stopped(waits), "the departure with slot 4 may have paid it"
    execute("UPDATE spend_accounts SET next_slot = 4")
    assert cancel_stopped(waits) == ""
    assert cancel_stopped(waits) == "it is cancelled"
    with pytest.raises(PayoutNotPending):
        cancel(waits)


def test_a_destination_newly_on_the_deny_list_is_not_approved(shop: UUID, tmp_path: Path) -> None:
    order = payout(shop)
    (tmp_path / "deny").write_text(DESTINATION.upper().replace("0X", "0x") + "  # since today\n")

    with pytest.raises(ComplianceAddressBlocked):
        approve(order, deny_list=DenyList(tmp_path / "deny"))

    assert (reread(order).status, approvers(order)) == ("pending", set())


@pytest.mark.parametrize("status", ["pending", "awaiting_cosign"])
def test_cancelling_returns_the_whole_hold_once(shop: UUID, status: PayoutStatus) -> None:
    order = payout(shop, status=status)

    assert cancel(order).status == "cancelled"

    assert balances_of(shop) == {AVAILABLE: 100 * USDT}
    assert webhook_events(order) == [f"payout.{status}", "payout.cancelled"]
    with pytest.raises(PayoutNotPending):
        cancel(order)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_one_of_many_concurrent_decisions_takes_effect(shop: UUID) -> None:
    order = payout(shop)

    done = at_once(8, lambda number: cancel(order) if number % 2 else approve(order, f"pk_{number}"))

    after = reread(order)
    # A cancellation may follow the approval, but not the other way round.
    assert [type(each).__name__ for each in done].count("PayoutNotPending") in {6, 7}
    assert after.status in {"approved", "cancelled"}
    assert balances_of(shop).get(PAYOUT_HELD, 0) == (11 * USDT if after.status == "approved" else 0)
    assert len(approvers(order)) <= 1


def test_a_cancellation_that_waited_for_the_broadcast_is_refused(shop: UUID) -> None:
    order = payout(shop)
    outcome: list[Exception] = []

    def cancel_meanwhile() -> None:
        try:
            cancel(order)
        except Exception as error:  # noqa: BLE001 - judged below
            outcome.append(error)
        finally:
            close()

    approved = approve(order)
    with transaction():
        locked = payouts.lock(approved.id)
        assert locked is not None
        assert payout_hooks.begin(CATALOGUE, locked)
        meanwhile = threading.Thread(target=cancel_meanwhile)
        meanwhile.start()
        wait_until_somebody_waits()
    meanwhile.join(30)

    assert [type(error) for error in outcome] == [PayoutNotPending]
    assert reread(order).status == "broadcasting"
    as_signed(order)


def test_another_merchants_payout_is_not_found(shop: UUID) -> None:
    order = payout(shop)
    stranger = one("SELECT gen_random_uuid()")
    assert stranger is not None
    for lookup in ({"uuid": str(order.id), "order_id": None}, {"uuid": None, "order_id": order.order_id}):
        assert outcome_decisions.look_up(shop, **lookup).id == order.id
        with pytest.raises(PayoutNotFound):
            outcome_decisions.look_up(stranger[0], **lookup)
    with pytest.raises(PayoutNotFound):
        outcome_decisions.look_up(shop, uuid=str(stranger[0]), order_id=order.order_id)
    assert find_by_order(stranger[0], order.order_id) is None


def test_a_payout_that_ended_meanwhile_is_not_approved(shop: UUID) -> None:
    order = payout(shop)
    with transaction():
        endings.end(CATALOGUE, order.id, "cancelled")

    with pytest.raises(PayoutNotPending):
        approve(order)


# Refunds ----------------------------------------------------------------------------------------------------


def test_a_waiting_refund_is_approved_or_cancelled_like_a_payout(database: str) -> None:
    del database
    shop, chain = merchant(fee_ppm=0, fee_fixed_usd_cents=0), Chain()
    sale = paid(chain, invoice(shop, fee_ppm=0, fee_fixed_usd_cents=0, fee_fixed_units=0))
    chain.mature()
    crediting.release_matured(chain.network, limit=10)
    waits: dict[str, Any] = {"status": "pending", "is_approval_required": True, "created_by": CREATOR}
    first, second = refund(sale, USDT, **waits), refund(sale, 2 * USDT, **waits)
    with pytest.raises(PayoutApproverIsCreator):
        approve(first, CREATOR)

    assert (approve(first).status, cancel(second).status) == ("approved", "cancelled")

    assert balances_of(shop) == {AVAILABLE: PRICE - USDT - FEE, PAYOUT_HELD: USDT + FEE}
    assert_sound()


def test_a_cancelled_refund_from_suspense_leaves_its_payment_undecided(database: str) -> None:
    del database
    shop, chain = merchant(), Chain()
    short = invoice(shop)
    paid(chain, short, 3 * USDT)
    sent_back = send_back(expired(chain, short), status="pending", is_approval_required=True)
    assert suspense(shop) == 0

    assert cancel(sent_back).status == "cancelled"

    assert suspense(shop) == 3 * USDT
    assert (settled(short).status, settled(short).is_final) == ("wrong_amount", False)

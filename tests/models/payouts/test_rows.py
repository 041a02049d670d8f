"""A payout is a row with its money held, guarded changes of status, and an event for each."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg2.errors
import pytest

from core.ids import uuid7
from core.invoices.states import ForbiddenTransitionError
from core.logs import counters
from core.payouts.states import PAYOUT_TRANSITIONS, PayoutStatus
from models.db import locks
from models.db.base import execute, one, rows, transaction
from models.ledger import ledger
from models.ledger.ledger import (
    AVAILABLE,
    DEBT,
    EQUITY,
    GATEWAY,
    PAYOUT_HELD,
    SUSPENSE,
    Account,
    InsufficientFundsError,
    Transfer,
)
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from tests.models.builders import CATALOGUE, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of, net_of
from tests.models.payouts.builders import FEE, RECIPIENT, USDT, events_of, fund, rich_shop

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def shop() -> UUID:
    """A merchant with 100 USDT."""
    return rich_shop()


def new(merchant_id: UUID, **columns: Any) -> PayoutRow:
    return PayoutRow(
        **{
            "id": uuid7(),
            "merchant_id": merchant_id,
            "order_id": "payout-1",
            "kind": "payout",
            "currency": "USDT",
            "network": "ethereum",
            "address": RECIPIENT.lower(),
            "amount_units": 25 * USDT,
            "fee_units": FEE,
            "to_units": 25 * USDT,
            "is_fee_on_top": True,
            "status": "approved",
            "created_by": "pk",
        }
        | columns
    )


def insert(merchant_id: UUID, **columns: Any) -> PayoutRow:
    with transaction():
        return payouts.insert(CATALOGUE, new(merchant_id, **columns))


def move(before: PayoutRow, status: PayoutStatus, **more: Any) -> PayoutRow | None:
    with transaction():
        return payouts.move(CATALOGUE, before, status, **more)


def test_a_payout_is_stored_as_planned(shop: UUID) -> None:
    decided = new(
        shop,
        memo="m",
        source="manual",
        priority="high",
        is_approval_required=True,
        status="pending",
        url_callback="https://shop.example/payouts",
        request_id="r",
        from_currency="USDT",
        from_units=7,
        rate="0.5",
    )
    with transaction():
        row = payouts.insert(CATALOGUE, decided)

    for name in vars(decided):
        if name != "hold_reference":
            assert getattr(row, name) == getattr(decided, name), name
    assert (row.held_units, row.txid, row.confirmations, row.error) == (25 * USDT + FEE, "", 0, None)
    assert row.created_at <= row.updated_at
    assert row.created_at.microsecond % 1000 == 0


def test_a_payouts_money_is_held_under_its_own_reference(shop: UUID) -> None:
    row = insert(shop)

    assert row.hold_reference == f"payout:{row.id}:hold"
    assert rows("SELECT units FROM ledger_transfers WHERE reference = %s", (row.hold_reference,)) == [(row.held_units,)]
    assert balances_of(shop) == {AVAILABLE: 100 * USDT - row.held_units, PAYOUT_HELD: row.held_units}
    assert events_of(row.id) == ["payout.approved"]
    assert_sound()


def test_already_held_money_is_not_held_again(shop: UUID) -> None:
    hold = f"payout_link:{uuid7()}:hold"
    with transaction():
        ledger.post(hold, [Transfer(Account(shop, AVAILABLE, "USDT"), Account(shop, PAYOUT_HELD, "USDT"), 30 * USDT)])

    row = insert(shop, kind="cheque", hold_reference=hold)

    assert row.hold_reference == hold
    assert balances_of(shop)[PAYOUT_HELD] == 30 * USDT


def test_a_payout_from_suspense_holds_its_suspended_deposits(shop: UUID) -> None:
    with transaction():
        ledger.post("in", [Transfer(Account(GATEWAY, EQUITY, "USDT"), Account(shop, SUSPENSE, "USDT"), 30 * USDT)])

    row = insert(shop, kind="stray", funded_from="suspense")

    assert balances_of(shop) == {AVAILABLE: 100 * USDT, PAYOUT_HELD: row.held_units}
    assert net_of(Account(shop, SUSPENSE, "USDT")) == 30 * USDT - row.held_units


def test_without_funds_no_payout_is_written(shop: UUID) -> None:
    with pytest.raises(InsufficientFundsError):
        insert(shop, amount_units=99 * USDT, to_units=99 * USDT)

    assert one("SELECT count(*) FROM payouts") == (0,)
    assert balances_of(shop) == {AVAILABLE: 100 * USDT}


def test_an_order_id_has_one_payout_and_is_its_merchants_own(shop: UUID) -> None:
    insert(shop)
    other = merchant()
    fund(other, 100 * USDT)
    theirs = insert(other)

    with pytest.raises(psycopg2.errors.UniqueViolation):
        insert(shop)
    assert payouts.find_by_order(other, "payout-1") == theirs
    assert payouts.find(shop, theirs.id) is None
    assert payouts.look_up(shop, uuid=str(theirs.id), order_id="payout-1") is None
    assert payouts.look_up(shop, uuid=None, order_id="payout-1") is not None
    assert payouts.look_up(shop, uuid=None, order_id=None) is None


def test_a_second_order_waits_for_the_first_of_the_same_order_id(shop: UUID) -> None:
    def make(number: int) -> UUID:
        with transaction():
            locks.wait_order("payout", shop, "payout-1")
            payout = payouts.find_by_order(shop, "payout-1")
            return (payout or payouts.insert(CATALOGUE, new(shop, created_by=str(number)))).id

    assert len(set(map(str, at_once(4, make)))) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [(a, b) for a in PAYOUT_TRANSITIONS for b in PAYOUT_TRANSITIONS if b not in PAYOUT_TRANSITIONS[a]],
)
def test_an_impossible_change_of_status_is_refused(shop: UUID, before: PayoutStatus, after: PayoutStatus) -> None:
    row = insert(shop, status=before)

    with pytest.raises(ForbiddenTransitionError):
        move(row, after)
    assert events_of(row.id) == [f"payout.{before}"]


def test_each_change_writes_one_event_by_the_process_that_makes_it(shop: UUID) -> None:
    row = insert(shop)

    answers = at_once(3, lambda _: move(row, "broadcasting"))
    sent = move(next(a for a in answers if isinstance(a, PayoutRow)), "sent", txid="0xab", block_height=7)

    assert sum(answer is None for answer in answers) == 2
    assert sent is not None
    assert (sent.status, sent.txid, sent.block_height) == ("sent", "0xab", 7)
    assert events_of(row.id) == ["payout.approved", "payout.broadcasting", "payout.sent"]
    bodies = rows("SELECT body FROM webhook_deliveries WHERE object_id = %s ORDER BY id", (row.id,))
    assert ['"txid":"0xab"' in body for (body,) in bodies] == [False, False, True]


def test_an_error_is_written_with_its_event_and_the_chains_data_is_kept(shop: UUID) -> None:
    row = insert(shop, status="sent")
    payouts.note_inclusion(row.id, txid="0xab", block_height=7)
    seen = payouts.find(shop, row.id)
    assert seen is not None

    failed = move(seen, "failed", error="reverted")

    assert failed is not None
    assert (failed.error, failed.txid, failed.block_height) == ("reverted", "0xab", 7)


def test_a_reorg_takes_a_payout_out_of_its_block(shop: UUID) -> None:
    row, chain = insert(shop, status="sent"), Chain()
    payouts.note_inclusion(row.id, txid="0xab", block_height=chain.height - 2)

    def shown() -> PayoutRow:
        payout = payouts.find(shop, row.id)
        assert payout is not None
        return payout

    assert shown().confirmations == 3
    chain.mine(2)
    assert shown().confirmations == 5
    payouts.note_inclusion(row.id, txid="0xab", block_height=chain.height + 1)
    assert shown().confirmations == 0
    payouts.note_inclusion(row.id, txid="0xab", block_height=None)
    assert (shown().confirmations, shown().block_height, shown().txid) == (0, None, "0xab")
    assert events_of(row.id) == ["payout.sent"]


def test_amounts_that_do_not_add_up_are_refused(shop: UUID) -> None:
    row = insert(shop)

    for wrong in ("held_units = held_units + 1", "to_units = 0, held_units = fee_units", "from_currency = 'USDT'"):
        with pytest.raises(psycopg2.errors.CheckViolation):
            execute(f"UPDATE payouts SET {wrong} WHERE id = %s", (row.id,))


def test_an_unknown_payout_and_an_absent_debt_can_be_read(shop: UUID) -> None:
    assert payouts.lock(uuid7()) is None
    assert ledger.lock_debt(shop, "USDT") == 0
    with transaction():
        ledger.post("d", [Transfer(Account(shop, DEBT, "USDT"), Account(GATEWAY, EQUITY, "USDT"), 5)])
        assert ledger.lock_debt(shop, "USDT") == 5


def test_ends_are_counted_by_outcome_and_other_changes_are_not(shop: UUID) -> None:
    passed: tuple[PayoutStatus, ...] = ("broadcasting", "sent")
    endings: tuple[PayoutStatus, ...] = ("failed", "confirmed", "failed")
    for number, ending in enumerate(endings):
        made: PayoutRow | None = insert(shop, order_id=str(number), amount_units=USDT, to_units=USDT)
        for status in (*passed, ending):
            assert made is not None
            made = move(made, status)

    assert counters.snapshot() == {
        ("sluice_payouts_ended", ("failed",)): [2],
        ("sluice_payouts_ended", ("confirmed",)): [1],
    }

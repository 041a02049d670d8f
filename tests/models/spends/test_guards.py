"""The signer's checks of the ledger and of its own rows before it signs, one at a time."""

from __future__ import annotations

import pytest

from core.ids import uuid7
from models.db.base import execute, rows, transaction
from models.ledger.ledger import AVAILABLE, Account, Transfer, post
from models.payouts import queue as payout_queue
from models.payouts.rows import PayoutRow
from models.spends import limit_counters, unexplained
from models.spends import reads as spend_reads
from models.spends import rows as spends
from tests.models.builders import USDT
from tests.models.db.collisions import at_once
from tests.models.payouts.held import funded, payout, reread, taken
from tests.models.spends.test_rows import mined, spend


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database


def move(of: PayoutRow, reference: str, units: int) -> None:
    """Hold more of the merchant's money; a negative sum returns it."""
    available = Account(of.merchant_id, AVAILABLE, of.currency)
    with transaction():
        post(
            reference,
            [
                Transfer(available, of.held_account, units)
                if units > 0
                else Transfer(of.held_account, available, -units)
            ],
        )


def cheque(*, units: int = 11 * USDT) -> PayoutRow:
    """Return a cheque's payout; another payout's hold has an equal sum."""
    shop = funded()
    beside = payout(shop)
    move(beside, "payout_link:one:hold", units)
    return payout(shop, hold_reference="payout_link:one:hold", status="approved")


def test_a_payouts_hold_is_found_by_its_own_reference() -> None:
    assert payout_queue.is_held(payout(funded()))


def test_a_returned_cheque_holds_no_money_for_its_payout() -> None:
    """Although an equal sum is held for others."""
    order = cheque()
    move(order, "payout_link:one:return", -11 * USDT)
    assert not payout_queue.is_held(reread(order))


@pytest.mark.parametrize("ending", ["leave", "return"])
def test_money_that_left_or_returned_is_not_held(ending: str) -> None:
    """Although an equal sum is held for others."""
    order = cheque()
    move(order, f"payout:{order.id}:{ending}", -1)
    move(order, "test:more", 1)
    assert not payout_queue.is_held(reread(order))


@pytest.mark.parametrize(("units", "is_held"), [(11 * USDT, True), (11 * USDT - 1, False)])
def test_a_cheques_hold_must_cover_it_fully(units: int, *, is_held: bool) -> None:
    assert payout_queue.is_held(cheque(units=units)) is is_held


def test_bytes_taken_out_of_a_block_are_sent_to_the_nodes_at_once() -> None:
    row = spend()
    spends.note_tried(row.id, 0, error="")
    mined(row)
    assert spends.attempts_of(row.id)[0].seconds_silent == 0
    assert spends.take_out(row.id)
    assert spends.attempts_of(row.id)[0].seconds_silent is None


@pytest.mark.parametrize("change", ["raw = 'other'", "txid = 'other'", "number = 1", "spend_id = gen_random_uuid()"])
def test_a_signed_attempt_is_immutable(change: str) -> None:
    """It may be on its way: sending it again must send the same bytes."""
    row = spend()
    with pytest.raises(Exception, match="append-only"):
        execute(f"UPDATE spend_attempts SET {change} WHERE spend_id = %s", (row.id,))


def test_the_slot_of_a_dead_spend_is_a_gap_again() -> None:
    """A stranger seemed to have taken it for good. The spends behind it wait until the slot is used."""
    lost = spend(slot=4)
    spend(slot=5)
    assert not spend_reads.is_gap("ethereum", lost.sender, 4)
    spends.finish(lost, "dead", booked_fee_units=0)
    assert spend_reads.is_gap("ethereum", lost.sender, 4)
    mined(spend(slot=6))
    assert not spend_reads.is_gap("ethereum", lost.sender, 4), (
        "a later slot is in a block, so the chain has used this one"
    )


def test_a_locked_spend_is_waited_for() -> None:
    """A verdict over its attempts and another attempt must not pass each other."""
    row = spend()
    with transaction():
        assert spends.lock(row.id) is not None
        (outcome,) = at_once(
            1, lambda _number: execute("SELECT 1 FROM spends WHERE id = %s FOR NO KEY UPDATE NOWAIT", (row.id,))
        )
    assert "could not obtain lock" in str(outcome)


def test_a_payout_on_its_way_is_neither_postponed_nor_refused() -> None:
    order = taken(payout(funded()), "approved", "broadcasting")
    payout_queue.postpone(order.id, seconds=60, reason="test", waiting_for="network")
    assert not payout_queue.refuse(order.id, reason="test")
    execute("UPDATE app_clock SET ahead = ahead + interval '1 hour'")
    assert not payout_queue.refuse(order.id, reason="test")
    assert rows("SELECT refused_since, wait_reason FROM payouts") == [(None, "")]


def test_the_signer_sums_spends_of_one_network_within_an_hour() -> None:
    for cents in (300, 400):
        limit_counters.add(uuid7(), merchant_id=uuid7(), network="ethereum", usd_cents=cents)
    assert (limit_counters.spent().hour, limit_counters.spent().day) == (700, 700)


def test_a_block_without_departures_costs_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in ("rows", "column"):
        monkeypatch.setattr(unexplained, ask, None)
    assert unexplained.own("ethereum", "evm", []) == {}
    assert unexplained.without_row("ethereum", {}) == set()

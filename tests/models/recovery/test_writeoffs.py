"""Write-offs are kept for a time: an order that may repeat one waits, and an operator may still book it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from models.db.base import execute, rows, transaction
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.recovery.writeoffs import RecoveryError
from models.spends import matching, signing_stops, unexplained
from models.spends import rows as spends
from models.spends.outputs import Moved
from models.spends.rows import Inclusion
from models.spends.unexplained import Part
from tests.models.builders import CATALOGUE, USDT, assert_sound
from tests.models.payout_links.builders import ANN, BOB, rich_merchant
from tests.models.payouts.held import payout
from tests.models.spends.departures import OUT_OF_BLOCKS, a_departure
from tests.models.treasury.builders import pin_hot

UNIT = 10**6
FEE_OUT = "UPDATE payouts SET is_fee_on_top = false, amount_units = held_units"
NO_TRANSFER = "UPDATE unexplained_departures SET is_transfer = false"
LESS = "UPDATE payouts SET amount_units = amount_units - 1"
CONTRACT = CATALOGUE.pairs["USDT", "ethereum"].contract


@pytest.fixture
def shop(database: str) -> UUID:
    del database
    pin_hot()
    return rich_merchant()


def write_off(*parts: tuple[str, int], **columns: Any) -> None:
    """Note an unexplained transfer of whole USDT to several recipients, and write it off."""
    outputs = [Part(to, amount * UNIT).to_json() for to, amount in parts]
    new = a_departure(outputs=outputs, currency="USDT", contract=CONTRACT, decimals=6, **columns)
    with transaction():
        assert unexplained.note(new)
    moved, _ = writeoffs.explained(CATALOGUE, "ethereum", "USDT")
    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", moved, reason="a test", by="operator")


def include(*moved: Moved) -> None:
    """Let the written-off transaction be seen in its block."""
    (spend,) = spends.SpendRow.read("true")
    place = Inclusion("0xlost", 1, "0x1", outputs=moved, fee_units=0, movements=())
    with transaction():
        assert spends.mark_mined(spend, place)
    execute(
        "INSERT INTO spend_movements SELECT id, network, sender, currency, decimals, -left_units, 1 FROM spends"
        " WHERE left_units IS NOT NULL"
    )


def adopt(shop: UUID, order: PayoutRow, *, place: int | None = None) -> tuple[PayoutRow, int]:
    return writeoffs.pay_order(
        CATALOGUE, "ethereum", "0xlost", merchant_id=shop, order_id=order.order_id, by="operator", place=place
    )


@pytest.mark.parametrize(
    ("change", "is_repeat"),
    [
        ("UPDATE payouts SET status = 'approved'", True),
        (f"{FEE_OUT}, to_units = to_units - 1, fee_units = fee_units + 1", True),
        (f"{FEE_OUT}, to_units = to_units - fee_units * 9, fee_units = fee_units * 10", False),
        (f"{LESS}, to_units = to_units - 1, held_units = held_units - 1", False),
        ("UPDATE payouts SET address = '0x'", False),
        ("UPDATE payouts SET memo = '7'", False),
        ("UPDATE payouts SET network = 'bsc'", False),
        ("UPDATE payouts SET currency = 'ETH'", False),
        ("UPDATE unexplained_departures SET settled_at = settled_at - interval '7 days'", False),
        ("UPDATE unexplained_departures SET settled_at = settled_at - interval '6 days'", True),
        ("UPDATE unexplained_departures SET status = 'adopted'", False),
        ("UPDATE unexplained_departures SET key_ordinal = 1", False),
        (NO_TRANSFER, False),
        (f"{NO_TRANSFER}, claim = 'coins', slot = NULL, spends = '[[\"0xcoin\", 0]]'", True),
        ("UPDATE spend_outputs SET effect = 'none'", False),
        ("UPDATE spend_outputs SET effect = 'other'", True),
        ("UPDATE spend_outputs SET state = 'confirmed'", True),
        ("UPDATE spend_outputs SET state = 'failed'", False),
        ("UPDATE spend_outputs SET state = 'dead'", False),
        ("UPDATE spend_outputs SET payout_id = (SELECT id FROM payouts)", False),
    ],
)
def test_an_order_may_repeat_a_recent_write_off(shop: UUID, change: str, *, is_repeat: bool) -> None:
    write_off((ANN, 10))
    order = payout(shop, address=ANN)
    execute(change)
    (after,) = PayoutRow.read("p.id = %s", (order.id,))
    assert matching.written_off(CATALOGUE, after) == ["0xlost"] * is_repeat


def test_an_order_named_at_the_write_off_does_not_wait(shop: UUID) -> None:
    order = payout(shop, address=ANN)
    with pytest.raises(RecoveryError, match="would be paid again"):
        write_off((ANN, 10))
    writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="a test", by="operator", despite=[order.id])
    assert matching.written_off(CATALOGUE, order) == []
    assert writeoffs.release(CATALOGUE, order.id) == []


def test_written_off_outputs_are_booked_one_by_one(shop: UUID) -> None:
    write_off((ANN, 10), (BOB, 10))
    ann, bob = payout(shop, address=ANN), payout(shop, address=BOB)
    with pytest.raises(RecoveryError, match="try again later"):
        adopt(shop, ann, place=0)
    include(Moved("exact"), Moved("other", 9 * UNIT, 9 * UNIT))
    for place, problem in ((None, "2 may be meant"), (2, "0 may be meant"), (1, "in no block in which")):
        with pytest.raises(RecoveryError, match=problem):
            adopt(shop, ann, place=place)
    with pytest.raises(RecoveryError, match="another transfer"):
        adopt(shop, bob, place=0)
    booked, left = adopt(shop, ann, place=0)
    assert (booked.id, booked.status, booked.txid, booked.block_height, left) == (ann.id, "sent", "0xlost", 1, 1)
    assert rows("SELECT status FROM unexplained_departures") == [("written_off",)]
    assert matching.written_off(CATALOGUE, bob) == ["0xlost"]
    assert_sound()


def test_a_write_off_that_is_no_payout_is_not_booked_as_one(shop: UUID) -> None:
    write_off((ANN, 10), key_ordinal=None)
    include(Moved("exact"))
    order = payout(shop, address=ANN)
    execute(NO_TRANSFER)
    with pytest.raises(RecoveryError, match="this is no payout"):
        adopt(shop, order)


# Departures that a reorg took ------------------------------------------------------------------------------------

COINS = {"slot": None, "claim": "coins", "spends": [["0xcoin", 0]]}


def noted(txid: str = "0xlost", **columns: Any) -> None:
    """Note an unexplained transfer of 10 USDT."""
    outputs = [Part(ANN, 10 * UNIT).to_json()]
    with transaction():
        assert unexplained.note(
            a_departure(txid, outputs=outputs, currency="USDT", contract=CONTRACT, decimals=6, **columns)
        )


def test_a_departure_with_a_slot_is_settled_in_no_block_too(shop: UUID) -> None:
    """Nothing is signed before: no other transaction can use its slot, so it may never come back or become void."""
    noted()
    noted("0xother", slot=4)
    execute(OUT_OF_BLOCKS)
    booked, left = adopt(shop, payout(shop, address=ANN, order_id="lost"))
    assert (booked.status, left) == ("sent", 0)
    _, txids = writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="a test", by="operator")
    assert (txids, signing_stops.has_unexplained("ethereum")) == (["0xother"], False)
    assert rows("SELECT purpose, state, slot FROM spends ORDER BY slot") == [("payout", "sent", 3), ("lost", "sent", 4)]


def test_a_departure_without_a_slot_that_is_in_no_block_holds_up_no_write_off(shop: UUID) -> None:
    """It stops no signing. It may never come back, and its coins are not spent otherwise while nothing is signed."""
    noted("0xgone", **COINS)
    execute(OUT_OF_BLOCKS)
    noted(**COINS)
    order = payout(shop, address=ANN)
    execute("UPDATE payouts SET order_id = 'another', address = '0x' WHERE id = %s", (order.id,))
    _, txids = writeoffs.write_off(CATALOGUE, "ethereum", "USDT", 10 * USDT, reason="a test", by="operator")
    assert (txids, signing_stops.has_unexplained("ethereum")) == (["0xlost"], False)
    assert rows("SELECT status FROM unexplained_departures ORDER BY txid") == [("unexplained",), ("written_off",)]
    with pytest.raises(RecoveryError, match="in no block now"):
        writeoffs.pay_order(CATALOGUE, "ethereum", "0xgone", merchant_id=shop, order_id="one", by="operator")


def test_a_release_counts_for_the_written_off_transactions_of_its_payout(shop: UUID) -> None:
    write_off((ANN, 10))
    other = payout(shop, address=BOB, status="approved", is_approval_required=False)
    execute("UPDATE payouts SET wait_reason = 'frozen'")
    assert writeoffs.release(CATALOGUE, other.id) == []
    assert rows("SELECT wait_reason FROM payouts") == [("frozen",)], "nothing was to release"

    order = payout(shop, address=ANN, status="approved", is_approval_required=False)
    execute("UPDATE payouts SET due_at = app_now() + interval '1 hour' WHERE id = %s", (order.id,))
    assert writeoffs.release(CATALOGUE, order.id) == ["0xlost"]
    assert matching.written_off(CATALOGUE, order) == []
    assert rows("SELECT due_at <= app_now() FROM payouts WHERE id = %s", (order.id,)) == [(True,)]

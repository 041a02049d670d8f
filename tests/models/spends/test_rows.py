"""Spends, attempts and slots as rows: guarded changes, sums, and the queue's view of payouts."""

from __future__ import annotations

from typing import Any

import pytest

from api.health import gauges
from core.ids import uuid7
from models.db.base import execute, transaction
from models.payouts import queue as payout_queue
from models.spends import outputs as spend_outputs
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends.outputs import Moved, OutputRow
from models.spends.rows import AttemptRow, Inclusion, SpendRow
from tests.models.builders import begin_scan
from tests.models.db.collisions import at_once

SENDER = "0x" + "5e" * 20


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database


def attempt(of: SpendRow, number: int = 0, *, price: int = 10, **end: Any) -> AttemptRow:
    txid = f"0x{uuid7().hex}{number}"
    return AttemptRow(
        spend_id=of.id, number=number, network=of.network, txid=txid, raw=txid.encode(),
        ceiling_units=100 * price + 7,
        terms={"gas_limit": 100, "price_units": price, "tip_units": 1, "data_units": 7},
        **end,
    )  # fmt: skip


def spend(*, contract: str | None = "0xtoken", units: int = 5, slot: int | None = None, **end: Any) -> SpendRow:
    with transaction():
        new = SpendRow(
            id=uuid7(), network="ethereum", purpose="gas", sender=SENDER, contract=contract,
            currency="ETH" if contract is None else "USDT", decimals=6, token_units=units,
            slot=spends.take_slot("ethereum", SENDER, at_least=0) if slot is None else slot,
        )  # fmt: skip
        signed = attempt(new, **end)
        spends.insert(new, [OutputRow(spend_id=new.id, recipient="0xr", token_units=units)], signed)
    return read(new.id)


def read(spend_id: object) -> SpendRow:
    stored = spends.find(spend_id)  # type: ignore[arg-type]
    assert stored is not None
    return stored


def mined(row: SpendRow, *, height: int = 7, fee_units: int = 3) -> bool:
    inclusion = Inclusion(row.txid, height, "0xb", outputs=(Moved("exact"),), fee_units=fee_units, movements=())
    return spends.mark_mined(row, inclusion)


def test_an_output_is_read_to_the_last_unit() -> None:
    most = 10**78 - 1
    (output,) = spend(units=most).outputs
    assert output == OutputRow(
        spend_id=output.spend_id, recipient="0xr", token_units=most, state="open", effect=None, left_units=None,
        arrived_units=None, lost_units=0, charged_units=0, problem="",
    )  # fmt: skip


def test_the_next_slot_follows_the_chain_and_never_goes_back() -> None:
    taken = [spends.take_slot("ethereum", SENDER, at_least=at_least) for at_least in (3, 3, 9, 0)]
    assert taken == [3, 4, 9, 10]
    assert spends.take_slot("polygon", SENDER, at_least=0) == 0


def test_a_rolled_back_slot_is_taken_again() -> None:
    def fail() -> None:
        with transaction():
            spends.take_slot("ethereum", SENDER, at_least=3)
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert spends.take_slot("ethereum", SENDER, at_least=3) == 3


def test_slots_taken_concurrently_are_different() -> None:
    def take(_number: int) -> int:
        with transaction():
            return spends.take_slot("ethereum", SENDER, at_least=0)

    assert sorted(at_once(6, take)) == list(range(6))  # type: ignore[type-var]


def test_a_slot_belongs_to_one_spend_that_is_not_dead() -> None:
    first = spend(slot=4)
    with pytest.raises(Exception, match="spends_by_slot"):
        spend(slot=4)
    assert spends.finish(first, "dead", booked_fee_units=0)
    assert spend(slot=4).slot == 4


def test_a_change_needs_the_state_that_was_read() -> None:
    row = spend()
    assert [spends.mark_sent(row.id), spends.mark_sent(row.id)] == [True, False]
    assert not spends.finish(row, "failed", booked_fee_units=0), "it was read as signed and is sent"
    row = read(row.id)
    assert [mined(row), mined(row)] == [True, False]
    row = read(row.id)
    assert spends.finish(row, "confirmed", booked_fee_units=3)
    assert not spends.finish(row, "confirmed", booked_fee_units=3)
    assert mined(row, height=8), "a confirmed one may move"
    assert read(row.id).state == "confirmed"
    assert [spends.settle(row.id, booked_fee_units=3) for _ in range(2)] == [True, False]
    assert not mined(row, height=9)
    assert not spends.take_out(row.id)


def test_an_attempt_is_added_only_to_a_waiting_spend_with_the_next_number() -> None:
    row = spend()
    assert not spends.add_attempt(attempt(row, 2))
    assert spends.add_attempt(attempt(row, 1, price=20))
    assert not spends.add_attempt(attempt(row, 1, price=30))
    assert [each.terms["price_units"] for each in spends.attempts_of(row.id)] == [20, 10]
    mined(read(row.id))
    assert not spends.add_attempt(attempt(row, 2))


def test_spends_in_no_block_promise_their_sums_at_the_newest_price() -> None:
    spend(units=5)
    bumped = spend(units=6)
    spends.add_attempt(attempt(bumped, 1, price=20))
    spend(contract=None, units=40)
    spend(contract="0xother", units=80)
    gone = spend(units=1_000)
    mined(gone)

    promised = spend_reads.promised("ethereum", SENDER, "0xtoken")
    assert (promised.token_units, promised.native_units) == (11, 40)
    assert promised.gas_units == 3 * 1_007 + 2_007
    assert spend_reads.promised("ethereum", SENDER, None).token_units == 40
    assert spend_reads.promised("polygon", SENDER, None).gas_units == 0


def test_depth_is_counted_in_scanned_blocks_only() -> None:
    begin_scan("ethereum", height=10, block_hash="0xa")

    def depth(height: int, block_hash: str) -> int:
        return spend_reads.depth("ethereum", height=height, block_hash=block_hash, settled_blocks=256)

    assert (depth(10, "0xa"), depth(10, "0xb"), depth(11, "0xb"), depth(9, "0xc")) == (1, 0, 0, 0)
    execute("UPDATE chain_cursors SET height = 300")
    assert (depth(10, "0xa"), depth(9, "0xc")) == (291, 292), "pruned blocks are too old to be replaced"
    assert spend_reads.depth("polygon", height=10, block_hash="0xa", settled_blocks=256) == 0


def test_an_oracles_verdict_holds_for_a_day() -> None:
    assert payout_queue.verdict("ethereum", "0x1") is None
    payout_queue.store_verdict("ethereum", "0x1", is_sanctioned=True)
    assert payout_queue.verdict("ethereum", "0x1") is True
    assert payout_queue.verdict("polygon", "0x1") is None
    execute("UPDATE app_clock SET ahead = ahead + interval '25 hours'")
    assert payout_queue.verdict("ethereum", "0x1") is None
    payout_queue.store_verdict("ethereum", "0x1", is_sanctioned=False)
    assert payout_queue.verdict("ethereum", "0x1") is False
    execute("UPDATE app_clock SET ahead = ahead - interval '10 hours'")
    assert payout_queue.verdict("ethereum", "0x1") is None, "a verdict from the future"


def test_metrics_count_waiting_spends() -> None:
    spend()
    by_name = {metric.name: metric for metric in gauges.payout_gauges()}
    assert [(s.labels, s.value) for s in by_name["sluice_spends_waiting"].samples] == [({"network": "ethereum"}, 1)]
    assert by_name["sluice_payouts"].samples == []


@pytest.mark.parametrize(
    "change", ["ceiling_units = 1", "terms = '{}'", "expires_height = 9", "expires_block = 9", "expires_at = app_now()"]
)
def test_the_signed_terms_are_the_offered_ones(change: str) -> None:
    spend()
    with pytest.raises(Exception, match="spend_attempts"):
        execute(f"UPDATE spend_attempts SET {change}")


def test_a_spend_has_no_effect_as_a_whole_while_an_output_is_on_its_way() -> None:
    places = [OutputRow(spend_id=uuid7(), place=place, recipient="0xr", token_units=5) for place in range(3)]

    def whole(*moved: Moved) -> tuple[object, ...]:
        return tuple(spend_outputs.sum_up(places, moved))

    exact, none, way, other = Moved("exact"), Moved("none", problem="refused"), Moved(None), Moved("other", 4, 3)
    assert whole(exact, exact, exact) == ("exact", None, None, "")
    assert whole(exact, exact, way) == (None, 15, 10, "")
    assert whole(way, way, way) == (None, 15, 0, "")
    assert whole(none, way, exact) == (None, 10, 5, "refused")
    assert whole(other, way, exact) == (None, 14, 8, "")
    assert whole(other, none, exact) == ("other", 9, 8, "refused")

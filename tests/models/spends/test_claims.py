"""Spends with uncounted claims do not wait for each other, and may expire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
import structlog

from core.ids import uuid7
from models.db.base import app_now, execute, transaction
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import seen, signing_stops, tracking, unexplained
from models.spends.outputs import OutputRow
from models.spends.rows import SpendRow
from tests.models.builders import CATALOGUE, Chain
from tests.models.spends import by_hand
from tests.models.spends.departures import a_departure
from tests.models.spends.test_rows import SENDER, attempt, read, spend
from tests.models.treasury.builders import other_with_slot

# The last block for spends signed here; the newest of a new chain.
WINDOW: Final = 100


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as captured:
        yield captured


def uncounted(expires_height: int | None = WINDOW, **columns: Any) -> SpendRow:
    new = SpendRow(
        id=uuid7(), network="ethereum", purpose="gas", sender=SENDER, contract="0xtoken", currency="USDT", decimals=6,
        token_units=5, slot=None,
    )  # fmt: skip
    signed = attempt(new, expires_height=expires_height).but(**columns)
    with transaction():
        spends.insert(new, [OutputRow(spend_id=new.id, recipient="0xr", token_units=5)], signed)
    return read(new.id)


def bury(row: SpendRow, cause: tracking.Cause) -> SpendRow | None:
    with transaction():
        return tracking.bury(CATALOGUE, row.id, attempts=1, cause=cause)


def wait() -> None:
    execute("UPDATE app_clock SET ahead = ahead + interval '1 minute'")


def test_an_uncounted_spend_is_stuck_by_its_own_age() -> None:
    rows = [uncounted(), uncounted(), spend(slot=1), spend(slot=2)]
    wait()
    assert [spend_reads.is_stuck(row, patience_s=60) for row in rows] == [True, True, True, False]


def test_another_spends_inclusion_extends_only_counted_claims() -> None:
    free, counted = uncounted(), spend(slot=2)
    wait()
    execute("UPDATE spends SET mined_txid = '0x', mined_at = app_now() WHERE id = %s", (spend(slot=1).id,))
    assert spend_reads.is_stuck(free, patience_s=60)
    assert not spend_reads.is_stuck(counted, patience_s=60)


def test_an_uncounted_spend_is_no_gap_and_has_no_number() -> None:
    row = uncounted()
    assert not spend_reads.is_gap("ethereum", SENDER, 0)
    with pytest.raises(LookupError, match="has no number"):
        _ = row.counter
    assert spend(slot=7).counter == 7


def test_a_stranger_taking_an_uncounted_claim_raises_an_alarm(logs: list[Any]) -> None:
    after = bury(uncounted(), "claim_used")
    assert after is not None
    assert (after.state, after.outputs[0].state) == ("dead", "dead")
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("spend.claim_used_by_other", "critical")]


def test_an_expired_spend_dies_without_an_alarm(logs: list[Any]) -> None:
    row, chain = uncounted(), Chain()
    assert bury(row, "expired") is None, "the scan may still find it"
    chain.mine()
    after = bury(row, "expired")
    assert after is not None
    assert after.state == "dead"
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("spend.expired", "info")]


def test_a_confirmed_spend_that_expires_raises_an_alarm(logs: list[Any]) -> None:
    row = uncounted()
    Chain().mine()
    by_hand.change("state = 'confirmed'", "id = %s", (row.id,))
    after = bury(row, "expired")
    assert after is not None
    assert (after.state, after.problem, after.outputs[0].problem) == ("confirmed", *[tracking.EXPIRED] * 2)
    assert after.settled_at is not None
    assert [entry["event"] for entry in logs] == ["spend.expired", "spend.ended_expired"]


def test_a_block_dated_ahead_ends_no_window_before_its_time() -> None:
    """A provider may show alone a block that is dated years ahead."""
    chain, ends_at = Chain(), app_now() + timedelta(seconds=30)
    row = uncounted(expires_height=None, expires_at=ends_at)
    with transaction():
        assert unexplained.note(a_departure(slot=None, expires_at=ends_at, block_height=None, block_hash=None))

    def ended() -> tuple[bool, bool]:
        departure = unexplained.find("ethereum", "0xlost")
        assert departure is not None
        return spends.are_all_over(row.id), unexplained.is_void(departure)

    chain.mine(at=chain.time + timedelta(days=1))
    assert ended() == (False, False)
    wait()
    assert ended() == (False, False), "no block was read since"
    chain.mine()
    assert ended() == (True, True)


def test_a_counted_claim_is_dead_only_once_the_scan_shows_its_user() -> None:
    row = spend(slot=4)
    Chain()
    assert bury(row, "claim_used") is None
    with transaction():
        other_with_slot(row.id)
    assert bury(row, "claim_used") is not None


@pytest.mark.parametrize("cause", ["expired", "claim_used"])
def test_a_spend_seen_by_the_scan_is_not_dead_unless_a_reorg_took_it(cause: tracking.Cause, logs: list[Any]) -> None:
    row, chain = uncounted(), Chain()
    with transaction():
        assert seen.note("ethereum", [row.txid, "0xelse"], height=chain.height, block_hash=chain._hash()) == 1
        assert seen.note("ethereum", [row.txid], height=chain.height, block_hash=chain._hash()) == 0, "noted before"
        assert seen.note("ethereum", [], height=chain.height, block_hash=chain._hash()) == 0
    chain.mine()
    assert [bury(row, cause) for _ in range(2)] == [None, None]
    assert (read(row.id).state, signing_stops.read("ethereum") is not None) == ("signed", True)
    assert [entry["event"] for entry in logs if entry["log_level"] == "critical"] == [
        "signing.stopped",
        "spend.death_contradicted",
    ], "one alarm for each stop"
    execute("UPDATE chain_blocks SET hash = '0xother' WHERE height = %s", (WINDOW,))
    assert bury(row, cause) is not None


def test_a_spend_seen_before_its_row_was_restored_is_not_dead() -> None:
    row, chain = uncounted(), Chain()
    chain.mine()
    with transaction():
        new = a_departure("0xother", block_height=chain.height, block_hash=chain._hash())
        assert unexplained.note(new)
    # A transaction that an operator adopts becomes an attempt.
    execute("UPDATE unexplained_departures SET txid = %s", (row.txid,))
    assert bury(row, "expired") is None
    execute("UPDATE unexplained_departures SET status = 'unread', claim = 'window', slot = NULL")
    assert bury(row, "expired") is not None, "one provider's word"

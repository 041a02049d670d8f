"""A slot whose spend ended in no block is given back once a final block is past its end, and only then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from models.db.base import app_now, execute, transaction, value
from models.spends import reads as spend_reads
from models.spends import rows as spends
from models.spends import slots, unexplained
from models.spends import tracking as spend_tracking
from models.spends.hooks import hooks_of
from models.spends.rows import SpendRow
from models.treasury import sweeps
from tests.models.builders import CATALOGUE, Chain
from tests.models.spends import by_hand
from tests.models.spends.departures import DISMISSED, a_departure
from tests.models.spends.test_claims import bury, wait
from tests.models.spends.test_rows import SENDER, attempt, mined, read, spend

MATURITY: Final = CATALOGUE.networks["ethereum"].maturity
LIFE: Final = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def _database(database: str) -> None:
    del database
    # The purpose of these spends.
    assert hooks_of("gas") is not None, sweeps


@pytest.fixture
def chain() -> Chain:
    return Chain()


def ending(**columns: Any) -> SpendRow:
    """Write a spend with the sender's next slot that ends half a minute from now."""
    return spend(expires_at=app_now() + LIFE, **columns)


def next_slot() -> int:
    return spends.next_slot("ethereum", SENDER)


def pass_ends(chain: Chain, *, depth: int = MATURITY) -> None:
    """Let a scanned block of this depth be past all ends."""
    wait()
    chain.mine(at=app_now())
    chain.mine(depth - 1)


def test_a_slot_is_given_back_when_a_final_block_is_past_its_end(chain: Chain) -> None:
    row = ending()
    assert (row.slot, next_slot()) == (0, 1)
    pass_ends(chain)
    after = bury(row, "expired")
    assert after is not None
    assert (after.state, read(row.id).is_slot_free, next_slot()) == ("dead", True, 0)
    assert ending().slot == 0, "the next spend takes it, and no filler is needed"


def test_a_slot_stays_taken_while_only_our_clock_is_past_its_end(chain: Chain) -> None:
    row = ending()
    wait()
    assert bury(row, "expired") is None
    chain.mine(at=app_now() - 2 * LIFE)
    assert bury(row, "expired") is None, "the chain's own time is behind"
    assert (read(row.id).state, next_slot()) == ("signed", 1)


def test_a_slot_stays_taken_until_the_block_past_its_end_is_final(chain: Chain) -> None:
    row = ending()
    pass_ends(chain, depth=MATURITY - 1)
    assert spends.are_all_over(row.id)
    assert bury(row, "expired") is None
    chain.mine()
    assert bury(row, "expired") is not None


def test_a_slot_stays_taken_while_one_attempt_lives_on(chain: Chain) -> None:
    row = ending()
    later = app_now() + timedelta(hours=1)
    for number, ends_at in enumerate((later, None), start=1):
        _attempt(row, number, ends_at)
        pass_ends(chain)
        with transaction():
            assert spend_tracking.bury(CATALOGUE, row.id, attempts=number + 1, cause="expired") is None
    assert next_slot() == 1


def _attempt(row: SpendRow, number: int, ends_at: datetime | None) -> None:
    assert spends.add_attempt(attempt(row, number, expires_at=ends_at))


def test_a_slot_used_by_a_stranger_is_not_given_back(chain: Chain) -> None:
    row = ending()
    with transaction():
        assert unexplained.note(a_departure(sender=SENDER, slot=0, block_height=chain.height, block_hash="0x"))
    pass_ends(chain)
    assert bury(row, "claim_used") is not None
    assert (read(row.id).is_slot_free, next_slot()) == (False, 1)


def test_a_slot_before_used_ones_leaves_the_next_slot_alone(chain: Chain) -> None:
    rows = [ending() for _ in range(3)]
    assert mined(rows[1])
    pass_ends(chain)
    assert bury(rows[0], "expired") is not None
    assert next_slot() == 3
    assert bury(rows[2], "expired") is not None
    assert next_slot() == 2


def test_slots_that_end_in_any_order_are_all_given_back(chain: Chain) -> None:
    rows = [ending() for _ in range(3)]
    pass_ends(chain)
    assert bury(rows[0], "expired") is not None
    assert next_slot() == 3, "others wait behind it"
    assert spend_reads.is_gap("ethereum", SENDER, 0)
    for row in rows[1:]:
        assert bury(row, "expired") is not None
    assert next_slot() == 0


def test_an_unsettled_departure_keeps_its_slot(chain: Chain) -> None:
    row = ending()
    with transaction():
        assert unexplained.note(a_departure(sender=SENDER, slot=1, block_height=chain.height, block_hash="0x"))
    spends.raise_slot("ethereum", SENDER, 2)
    pass_ends(chain)
    assert bury(row, "expired") is not None
    assert next_slot() == 2
    execute(DISMISSED)
    with transaction():
        spends.give_back_slot(row)
    assert next_slot() == 0


def test_a_slot_given_back_explains_no_departure(chain: Chain) -> None:
    """A stranger who uses it later is looked for."""
    row = ending()
    pass_ends(chain)
    assert bury(row, "expired") is not None
    assert slots.unexplained("ethereum", SENDER, 0, limit=9) == []
    assert slots.unexplained("ethereum", SENDER, 1, limit=9) == [0]


def test_a_confirmed_spend_that_a_reorg_took_gives_its_slot_back(chain: Chain) -> None:
    row = ending()
    by_hand.change("state = 'confirmed'", "id = %s", (row.id,))
    pass_ends(chain)
    after = bury(row, "expired")
    assert after is not None
    assert (after.state, after.problem, next_slot()) == ("confirmed", spend_tracking.EXPIRED, 0)
    spend(slot=1)
    assert spend_reads.is_gap("ethereum", SENDER, 0), "one behind it waits"
    again = ending()
    assert again.slot == 0
    assert unexplained.holders(a_departure_of(again)) == [again.id]
    assert spends.settled_in("ethereum", SENDER, range(3)) == {}
    assert not spend_reads.is_gap("ethereum", SENDER, 0)


def a_departure_of(row: SpendRow) -> unexplained.UnexplainedRow:
    return a_departure(sender=SENDER, slot=row.slot)


def test_a_departure_with_a_number_is_void_after_its_end(chain: Chain) -> None:
    ends_at = app_now() + LIFE
    with transaction():
        assert unexplained.note(a_departure(slot=4, expires_at=ends_at, block_height=None, block_hash=None))
    noted = unexplained.find("ethereum", "0xlost")
    assert noted is not None
    assert not unexplained.is_void(noted)
    pass_ends(chain, depth=1)
    assert unexplained.is_void(noted)


def test_a_slot_is_not_free_without_a_number() -> None:
    row = ending()
    assert value("SELECT is_slot_free FROM spends WHERE id = %s", (row.id,)) is False

"""A cursor moves only from the block that its scan read."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from models.db.base import execute, one, transaction
from models.deposits import cursors
from models.deposits.cursors import Cursor, Position, advance, kept_blocks, read, retreat, seen_head
from models.deposits.rows import ChainBlock
from tests.models.builders import begin_scan
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")

ETHEREUM: Final = "ethereum"


def begin(height: int = 100, block_hash: str = "0xa100") -> Cursor:
    begin_scan(ETHEREUM, height=height, block_hash=block_hash)
    return current()


def current() -> Cursor:
    cursor = read(ETHEREUM)
    assert cursor is not None
    return cursor


def step(expected: Cursor, block_hash: str | None = None, *, height: int | None = None) -> bool:
    number = expected.height + 1 if height is None else height
    with transaction():
        return advance(after(expected, block_hash, number), expected=expected, head=number + 5)


def after(cursor: Cursor, block_hash: str | None, height: int) -> ChainBlock:
    return ChainBlock(
        network=ETHEREUM,
        height=height,
        hash=block_hash or f"0xa{height}",
        parent_height=height - 1,
        parent_hash=cursor.hash,
        block_time=cursor.block_time + timedelta(seconds=1),
    )


def back(expected: Cursor, to_height: int) -> bool:
    with transaction():
        return retreat(ETHEREUM, expected=expected, to_height=to_height, peak=None)


def test_a_network_has_no_cursor_before_the_first_scan() -> None:
    assert read(ETHEREUM) is None
    assert kept_blocks(ETHEREUM) == []


def test_a_scan_begins_once() -> None:
    first = begin()

    begin_scan(ETHEREUM, height=100, block_hash="0xother")
    begin_scan(ETHEREUM, height=7, block_hash="0xa7")

    assert current() == first
    assert kept_blocks(ETHEREUM) == [(100, "0xa100")]


def test_an_advancing_cursor_keeps_its_blocks() -> None:
    first = begin()

    assert step(first)
    assert current() == Cursor(101, "0xa101", first.block_time + timedelta(seconds=1))
    assert kept_blocks(ETHEREUM) == [(101, "0xa101"), (100, "0xa100")]
    assert one("SELECT head_height FROM chain_cursors") == (106,)


@pytest.mark.parametrize(
    "stale",
    [
        pytest.param(lambda c: Cursor(c.height - 1, c.hash, c.block_time), id="another height"),
        pytest.param(lambda c: Cursor(c.height, "0xother", c.block_time), id="another hash"),
    ],
)  # fmt: skip
def test_a_cursor_does_not_move_from_another_position(stale: object) -> None:
    first = begin()
    assert callable(stale)

    assert not step(stale(first), "0xlie", height=101)
    assert not back(stale(first), 100)
    assert current() == first
    assert kept_blocks(ETHEREUM) == [(100, "0xa100")]


def test_one_of_many_concurrent_scans_moves_the_cursor() -> None:
    first = begin()

    outcomes = at_once(8, lambda number: step(first, f"0x{number}"))

    assert sorted(outcomes, key=bool) == [False] * 7 + [True]
    assert current().hash == f"0x{outcomes.index(True)}"


def test_a_rolled_back_step_does_not_move_the_cursor() -> None:
    first = begin()
    with pytest.raises(LookupError), transaction():  # noqa: PT012 - the step fails after it moved
        assert advance(after(first, "0x", 101), expected=first, head=1)
        raise LookupError

    assert current() == first


def test_a_retreat_to_a_kept_block_deletes_its_successors() -> None:
    first = begin()
    step(first)
    step(current())

    assert back(current(), 100)
    assert current() == first
    assert kept_blocks(ETHEREUM) == [(100, "0xa100")]

    assert step(first, "0xb101")
    assert kept_blocks(ETHEREUM) == [(101, "0xb101"), (100, "0xa100")]


def read_again(height: int) -> None:
    execute("UPDATE chain_cursors SET reread_height = %s", (height,))


def test_the_second_reading_advances_only_over_the_block_that_it_read() -> None:
    begin()
    first = current()
    for _ in range(3):
        step(current())
    read = dict(kept_blocks(ETHEREUM))
    assert cursors.reread_to(ETHEREUM, 101, block_hash=read[101])
    assert not cursors.reread_to(ETHEREUM, 103, block_hash=read[103]), "102 is left out"
    assert not cursors.reread_to(ETHEREUM, 102, block_hash="0xother")
    with transaction():
        assert retreat(ETHEREUM, expected=current(), to_height=first.height + 1, peak=None)
    assert not cursors.reread_to(ETHEREUM, 102, block_hash=read[102]), "the scan has not read that height again"
    assert cursors.reread_height(ETHEREUM) == 101


def test_blocks_shown_by_one_provider_only_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """That provider may have made them up, and then the scan has to go back."""
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 2)
    monkeypatch.setattr(cursors, "BLOCKS_UNREAD_MAX", 6)
    begin()
    step(current())
    read_again(101)
    for lowest in (100, 101, 101, 101, 101, 101, 102, 103):
        step(current())
        assert min(height for height, _ in kept_blocks(ETHEREUM)) == lowest, current()
    read_again(109)
    step(current())
    assert [height for height, _ in kept_blocks(ETHEREUM)] == [110, 109, 108]


def test_without_a_second_reading_old_blocks_are_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 2)
    begin()
    read_again(100)
    for _ in range(6):
        step(current())
    assert len(kept_blocks(ETHEREUM)) == 7

    cursors.end_rereading(ETHEREUM)
    step(current())
    assert [height for height, _ in kept_blocks(ETHEREUM)] == [107, 106, 105]


def test_during_a_halt_only_kept_blocks_count_as_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The halt may mean that the pruned blocks belong to another chain."""
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 2)
    monkeypatch.setattr(cursors, "BLOCKS_SETTLED", 3)
    begin()
    for _ in range(6):
        step(current())

    def scanned(height: int, block_hash: str) -> bool:
        with transaction():
            return cursors.is_scanned(ETHEREUM, height=height, block_hash=block_hash)

    kept = kept_blocks(ETHEREUM)[-1]
    assert (scanned(101, "0xany"), scanned(*kept)) == (True, True)
    cursors.halt(ETHEREUM, "a reorg deeper than the kept blocks")
    assert (scanned(101, "0xany"), scanned(*kept)) == (False, True)


def test_a_retreat_is_read_again_and_names_the_height_of_credits() -> None:
    begin()
    for _ in range(4):
        step(current())
    read_again(103)
    with transaction():
        assert retreat(ETHEREUM, expected=current(), to_height=102, peak=None)
    assert (cursors.reread_height(ETHEREUM), cursors.peak_height(ETHEREUM)) == (102, 104)
    with transaction():
        assert retreat(ETHEREUM, expected=current(), to_height=101, peak=103)
    assert (cursors.reread_height(ETHEREUM), cursors.peak_height(ETHEREUM)) == (101, 103)


def test_a_position_has_cursor_split_and_reference_block() -> None:
    assert cursors.position(ETHEREUM, pace_blocks=2) is None
    first = begin()
    for _ in range(4):
        step(current())
    cursors.note_split(ETHEREUM, 101)

    position = cursors.position(ETHEREUM, pace_blocks=2)
    assert position is not None
    assert (position.cursor, position.split_height) == (current(), 101)
    assert position.pace is not None
    assert (position.pace.height, position.pace.block_time) == (102, first.block_time + timedelta(seconds=2))
    assert position.pace.now >= first.block_time

    execute("DELETE FROM chain_blocks")
    cursors.note_split(ETHEREUM, None)
    assert cursors.position(ETHEREUM, pace_blocks=2) == Position(current())


def test_a_cursor_does_not_retreat_to_a_pruned_block() -> None:
    first = begin()

    assert not back(first, 99)
    assert current() == first


def test_a_bounded_number_of_blocks_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "BLOCKS_KEPT", 3)
    begin()
    for _ in range(6):
        step(current())

    assert [height for height, _ in kept_blocks(ETHEREUM)] == [106, 105, 104, 103]


def test_cursors_of_networks_are_independent() -> None:
    first = begin()
    begin_scan("bsc", height=7, block_hash="0xb7")
    step(first)

    assert (read("bsc") or first).height == 7
    assert kept_blocks("bsc") == [(7, "0xb7")]


def test_the_providers_head_is_stored() -> None:
    begin()
    seen_head(ETHEREUM, 123)

    assert one("SELECT height, head_height FROM chain_cursors") == (100, 123)

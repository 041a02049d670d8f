"""Scans a network whose heights have holes: skips them, waits for missing blocks, and finds reorgs at holes."""

from __future__ import annotations

from typing import cast
from uuid import UUID

import pytest

from actors.scan import follow, reorgs
from actors.scan.rescan import Reread, reread
from chains.base import Agreement
from chains.family import Reader
from models.db.base import column, execute, rows, transaction
from models.deposits import cursors
from models.invoices import rows as invoices
from models.outcomes import reversals
from models.spends import signing_stops
from tests.actors.scan.paper import CTX, begin, cursor, poll, statuses, to
from tests.models.builders import CATALOGUE
from tests.models.invoices.builders import invoice
from tests.models.ledger.figures import balances_of
from tests.peers.paper_reader import PaperReader

pytestmark = pytest.mark.usefixtures("sound")

ETHEREUM = CATALOGUE.networks["ethereum"]


@pytest.fixture
def chain(database: str, monkeypatch: pytest.MonkeyPatch) -> PaperReader:
    """A chain with blocks 1, 2 and 5, whose last the gateway has scanned."""
    del database
    made = begin(monkeypatch)
    made.mine(count=2)
    made.skip(2)
    made.mine()
    poll()
    return made


def test_holes_are_skipped_and_later_deposits_credited(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.skip(3)
    chain.mine(to(mine.address))
    chain.skip()
    chain.mine(count=ETHEREUM.confirmations)
    poll()

    assert cursor() == (chain.tip, f"0x0-{chain.tip}")
    assert invoices.reread(mine.id).status == "paid"
    assert balances_of(shop).keys() >= {"available"}
    assert rows("SELECT height, parent_height FROM chain_blocks ORDER BY height LIMIT 3") == [(5, 2), (9, 5), (11, 9)]


@pytest.mark.parametrize("beside", ["before", "behind"])
def test_a_reorg_next_to_a_hole_is_found(chain: PaperReader, shop: UUID, beside: str) -> None:
    chain.mine(to(invoice(shop).address))
    poll()
    assert (cursor()[0], statuses()) == (6, ["pending"])

    chain.reorg(5)
    if beside == "before":
        # The block itself became a hole, so that the next one has its parent.
        chain.skip()
    else:
        # Another block is in its place, and the next one is two heights above it.
        chain.mine()
        chain.skip()
    chain.mine()
    poll()

    assert statuses() == ["reversed"]
    assert cursor() == (chain.tip, f"0x1-{chain.tip}")


def test_a_reorg_next_to_a_hole_returns_a_deposit_in_another_block(chain: PaperReader, shop: UUID) -> None:
    mine = invoice(shop)
    chain.mine(to(mine.address))
    poll()

    chain.reorg(2)
    chain.skip(6)
    chain.mine(to(mine.address))
    chain.mine(count=ETHEREUM.confirmations)
    poll()

    assert rows("SELECT status, round, block_height FROM deposits") == [("credited", 1, 9)]


def test_a_chain_that_ends_with_a_hole_is_scanned_to_its_end(chain: PaperReader) -> None:
    with transaction():
        signing_stops.stop("ethereum", reason="a test")
    chain.mine()
    chain.skip(3)
    poll()

    assert cursor()[0] == 6
    stopped = signing_stops.read("ethereum")
    assert stopped is not None
    assert stopped.is_caught_up


def test_a_missing_block_of_a_lagging_node_is_not_a_hole(chain: PaperReader) -> None:
    with transaction():
        signing_stops.stop("ethereum", reason="a test")
    chain.mine()
    chain.skip(2)
    chain.lag = 3
    # Another node, which is ahead, reports the head.
    chain.head, real_head = lambda: 8, chain.head  # type: ignore[method-assign]
    chain.block = lambda _height: None  # type: ignore[method-assign]
    chain.scan = lambda *_asked, **_how: ()  # type: ignore[method-assign]
    poll()

    stopped = signing_stops.read("ethereum")
    assert (real_head(), cursor()[0]) == (5, 5)
    assert stopped is not None
    assert not stopped.is_caught_up


@pytest.mark.parametrize("behind", [0, 2])
def test_a_tip_that_became_a_hole_is_reversed(chain: PaperReader, shop: UUID, behind: int) -> None:
    """Whether the chain ends there, or with more holes."""
    chain.mine(to(invoice(shop).address))
    chain.skip(behind)
    poll()
    assert statuses() == ["pending"]

    chain.reorg(5)
    chain.skip(1 + behind)
    poll()

    assert (cursor(), statuses()) == ((5, "0x0-5"), ["reversed"])


@pytest.mark.parametrize("behind", [0, 1], ids=["that ends with a hole", "that goes on behind holes"])
def test_a_block_replaced_below_a_hole_is_reversed(chain: PaperReader, shop: UUID, behind: int) -> None:
    """A shorter chain that ends in one of our holes is compared below it."""
    chain.mine(to(invoice(shop).address))
    chain.skip(1 + behind)
    chain.mine(count=behind)
    poll()

    chain.reorg(5)
    chain.mine()
    chain.skip()
    poll(2)

    assert (cursor(), statuses()) == ((6, "0x1-6"), ["reversed"])


def test_a_shorter_chain_without_another_block_counts_as_lagging(chain: PaperReader, shop: UUID) -> None:
    chain.mine(to(invoice(shop).address))
    chain.skip(2)
    chain.mine()
    poll()

    chain.lag = 2
    poll(2)

    assert (cursor()[0], statuses()) == (9, ["credited"])


def test_a_block_that_half_of_the_providers_call_a_hole_is_kept(chain: PaperReader, shop: UUID) -> None:
    chain.mine(to(invoice(shop).address))
    poll()
    chain.providers, chain.agree = 2, Agreement(same=1, other=1)

    chain.reorg(5)
    chain.skip()
    chain.mine()
    poll()

    assert (cursor(), statuses()) == ((6, "0x0-6"), ["pending"])
    assert column("SELECT halted_reason FROM chain_cursors") == ["providers disagree about a block"]


def test_a_scan_begins_at_the_last_block_below_a_hole(chain: PaperReader) -> None:
    execute("DELETE FROM chain_blocks")
    execute("DELETE FROM chain_cursors")
    chain.skip(4)
    poll()

    assert (cursor(), cursors.started_height("ethereum")) == ((5, "0x0-5"), 5)


@pytest.mark.parametrize("holes", [reorgs.HOLE_MAX, 10**6])
def test_a_scan_of_holes_alone_waits_for_a_block(chain: PaperReader, holes: int) -> None:
    execute("DELETE FROM chain_blocks")
    execute("DELETE FROM chain_cursors")
    chain.skip(holes)
    poll()
    assert cursors.read("ethereum") is None

    chain.mine()
    poll()
    assert cursor()[0] == chain.tip


def test_more_holes_than_a_step_skips_are_waited_for(chain: PaperReader) -> None:
    chain.skip(reorgs.HOLE_MAX + 1)
    chain.asked.clear()
    poll()
    assert (cursor()[0], chain.asked) == (5, [])

    chain.mine()
    poll()
    assert cursor()[0] == chain.tip


def test_a_first_block_that_became_a_hole_is_replaced_by_the_one_below(chain: PaperReader, shop: UUID) -> None:
    chain.mine(to(invoice(shop).address))
    poll()

    chain.reorg(2)
    chain.skip(4)
    chain.mine()
    poll(2)

    assert (cursor(), statuses()) == ((7, "0x1-7"), ["reversed"])
    assert rows("SELECT height, parent_height FROM chain_blocks ORDER BY height") == [(2, 1), (7, 2)]


def test_a_restart_between_any_two_blocks_changes_nothing(
    chain: PaperReader, shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "BLOCKS_PER_STEP", 1)
    mine = invoice(shop)
    chain.mine(to(mine.address))
    chain.skip()
    chain.mine()
    poll(2)
    assert cursor()[0] == 8
    chain.reorg(5)
    chain.skip(2)
    chain.mine(to(mine.address))

    def dies(*_arguments: object) -> None:
        if cursor()[0] == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(reversals, "reverse_orphans", dies)
        with pytest.raises(KeyboardInterrupt):
            poll()
    assert (cursor()[0], statuses()) == (5, ["credited"])
    poll()
    chain.mine(count=ETHEREUM.confirmations)
    poll(10)

    assert rows("SELECT status, round, block_height FROM deposits") == [("credited", 1, 8)]


def test_a_block_without_its_parent_is_refused(chain: PaperReader, shop: UUID) -> None:
    """Near the head, a node that leaves out a block would hide its deposits."""
    chain.mine(to(invoice(shop).address))
    chain.mine()
    chain.left_out = [6]
    poll()
    assert (cursor()[0], statuses()) == (5, [])

    chain.left_out = []
    poll()
    assert (cursor()[0], statuses()) == (7, ["credited"])


def test_blocks_too_deep_for_reorgs_may_be_left_out_unless_all_are_requested(chain: PaperReader) -> None:
    chain.mine(count=3)
    chain.skip(cursors.BLOCKS_SETTLED)
    chain.left_out = [6, 7]
    with transaction():
        signing_stops.stop("ethereum", reason="a test")
    poll()
    assert cursor()[0] == 5

    execute("DELETE FROM signing_stops")
    poll()
    assert cursor()[0] == 8


# A second reading ---------------------------------------------------------------------------------------------------


def read_again(chain: PaperReader, height: int) -> Reread:
    return reread(CTX, ETHEREUM, cast("Reader", chain), height)


def test_a_hole_that_is_read_again_counts_as_read(chain: PaperReader) -> None:
    chain.skip()
    chain.mine()
    poll()

    assert read_again(chain, 6) == Reread(height=6, block_hash="")
    assert read_again(chain, 8) == Reread(height=8, block_hash=None)


def test_a_hole_in_place_of_a_scanned_block_is_another_chain(chain: PaperReader, shop: UUID) -> None:
    chain.mine(to(invoice(shop).address))
    poll()
    del chain.scans[6]

    assert read_again(chain, 6) == Reread(height=6, block_hash=None)
    assert statuses() == ["pending"]


@pytest.mark.parametrize("depth", [1, cursors.BLOCKS_SETTLED + 10])
def test_a_block_in_a_hole_of_the_scanned_chain_adds_no_deposit(chain: PaperReader, shop: UUID, depth: int) -> None:
    mine = invoice(shop)
    chain.skip()
    chain.mine(count=depth)
    poll(8)
    other = PaperReader(began=chain.began, branch=9, tip=5, scans=dict(chain.scans))
    other.reorg(5)
    other.mine(to(mine.address))
    other.tip = chain.tip

    assert read_again(other, 6) == Reread(height=6, block_hash=None)
    assert statuses() == []

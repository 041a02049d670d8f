"""The blocks of shards between two master blocks: by their numbers, through splits and merges, none left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chains.base import ContradictionError
from chains.ton import nodes, wire
from chains.ton.nodes import Toncenter
from chains.ton.scan import shards
from chains.ton.wire import WHOLE, BlockId
from devstack.ton.blocks import WHOLE as ALL
from devstack.ton.blocks import halves
from devstack.ton.simulator import Simulator
from tests.chains.ton.lying import LyingTon
from tests.chains.ton.reading import NETWORK
from tests.chains.ton.running import shared_engine

HASH = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo="
LEFT, RIGHT = halves(ALL)


@pytest.fixture
def chain() -> Simulator:
    simulator = Simulator(shared_engine(), NETWORK.chain_identity)
    simulator.mine(2)
    return simulator


@pytest.fixture
def peer(chain: Simulator) -> Iterator[LyingTon]:
    with LyingTon(chain) as node:
        yield node


@pytest.fixture
def node(peer: LyingTon) -> Toncenter:
    return Toncenter(peer.url, timeout_s=5)


def between(node: Toncenter, seqno: int) -> list[tuple[int, int]]:
    """Return number and shard of the blocks that a master block adds."""
    before, after = nodes.tops(node, seqno - 1), nodes.tops(node, seqno)
    return [(block.seqno, block.prefix) for block in shards.added(node, before, after)]


def test_the_next_block_of_a_shard_takes_no_header(node: Toncenter, peer: LyingTon) -> None:
    assert between(node, 2) == [(2, ALL)]
    assert "getBlockHeader" not in peer.asked


def test_several_blocks_of_a_shard_for_one_master_block(node: Toncenter, chain: Simulator) -> None:
    seqno = chain.mine(between=4)
    assert between(node, seqno) == [(number, ALL) for number in (3, 4, 5, 6)]


def test_a_shard_without_a_new_block(node: Toncenter, peer: LyingTon) -> None:
    peer.lies["shards"] = lambda _truth, _asked: peer._truth("shards", {"seqno": 1})
    assert between(node, 2) == []


def test_splits_and_merges(node: Toncenter, chain: Simulator) -> None:
    chain.split(ALL)
    assert between(node, chain.mine()) == [(3, LEFT), (3, RIGHT)]
    chain.split(LEFT)
    low, high = halves(LEFT)
    assert between(node, chain.mine(between=2)) == [(4, low), (4, high), (4, RIGHT), (5, low), (5, high), (5, RIGHT)]
    chain.merge(low, high)
    assert between(node, chain.mine()) == [(6, LEFT), (6, RIGHT)]
    chain.merge(LEFT, RIGHT)
    assert between(node, chain.mine()) == [(7, ALL)]


def test_a_split_and_a_merge_between_two_master_blocks(node: Toncenter, chain: Simulator) -> None:
    before, made = nodes.tops(node, 2), chain.head.time
    chain.split(ALL)
    chain._shard_blocks(made)
    chain.merge(LEFT, RIGHT)
    chain._shard_blocks(made)
    chain._append_master(made)
    after = nodes.tops(node, 3)

    added = [(block.seqno, block.prefix) for block in shards.added(node, before, after)]

    assert (after[0].shard, after[0].seqno) == (before[0].shard, before[0].seqno + 2)
    assert added == [(3, LEFT), (3, RIGHT), (4, ALL)]


def test_a_shard_block_between_left_out(node: Toncenter, peer: LyingTon, chain: Simulator) -> None:
    """A node that leads past a block of a shard is not believed: numbers follow each other."""
    seqno = chain.mine(between=3)
    [first] = peer._truth("shards", {"seqno": seqno - 1})["shards"]

    def skips(truth: Any, _asked: dict[str, Any]) -> Any:
        return truth | {"prev_blocks": [first]}

    peer.lies["getBlockHeader"] = skips
    with pytest.raises(ContradictionError, match="is left out"):
        between(node, seqno)


def test_a_way_back_that_ends_elsewhere(node: Toncenter, peer: LyingTon, chain: Simulator) -> None:
    seqno = chain.mine(between=3)

    def elsewhere(truth: Any, asked: dict[str, Any]) -> Any:
        if asked["seqno"] == 4:
            truth["prev_blocks"][0]["root_hash"] = HASH
        if asked["seqno"] == 3:
            truth["id"]["root_hash"] = HASH
            truth["prev_blocks"][0]["root_hash"] = HASH
        return truth

    peer.lies["getBlockHeader"] = elsewhere
    before = list(nodes.tops(node, seqno - 1))
    # The header of number 3 is asked for no more: it follows the number that is known.
    assert len(between(node, seqno)) == 3
    other = [BlockId(0, WHOLE, before[0].seqno - 2, HASH, HASH)]
    with pytest.raises(ContradictionError):
        shards.added(node, other, nodes.tops(node, seqno))


def test_blocks_of_other_shards_do_not_follow_each_other(node: Toncenter, peer: LyingTon, chain: Simulator) -> None:
    chain.split(ALL)
    before = chain.mine()
    chain.split(LEFT)
    after = chain.mine()

    def crossed(truth: Any, _asked: dict[str, Any]) -> Any:
        for block in truth["prev_blocks"]:
            block["shard"] = str((RIGHT ^ 1 << 63) - (1 << 63))
        return truth

    peer.lies["getBlockHeader"] = crossed
    with pytest.raises(ContradictionError, match="other shards"):
        between(node, after)
    peer.lies["getBlockHeader"] = lambda truth, _asked: truth | {"prev_blocks": []}
    with pytest.raises(ContradictionError, match="left out"):
        between(node, after)
    assert before == after - 1


def test_a_block_of_before_that_nothing_follows(node: Toncenter, peer: LyingTon, chain: Simulator) -> None:
    chain.split(ALL)
    seqno = chain.mine()
    tops = nodes.tops(node, seqno)
    with pytest.raises(ContradictionError, match="do not follow"):
        shards.added(node, tops, [tops[0]])
    with pytest.raises(ContradictionError, match="past"):
        shards.added(node, tops, nodes.tops(node, seqno - 1))
    assert peer.asked.count("getBlockHeader") == 0


def test_a_way_without_an_end_is_bounded(node: Toncenter, chain: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    seqno = chain.mine(between=5)
    monkeypatch.setattr(shards, "BLOCKS_MAX", 3)
    with pytest.raises(ContradictionError, match="past"):
        between(node, seqno)


@pytest.mark.parametrize(
    "kept",
    [
        [],
        [LEFT],
        [RIGHT],
        [LEFT, LEFT],
        [LEFT, LEFT, RIGHT],
        [ALL, RIGHT],
        [LEFT, halves(RIGHT)[0]],
        [0],
    ],
)
def test_shards_cover_every_account_once(node: Toncenter, peer: LyingTon, kept: list[int]) -> None:
    """A shard that a node leaves out would hide the payments to its accounts."""

    def some(truth: Any, _asked: dict[str, Any]) -> Any:
        [block] = truth["shards"]
        return {"shards": [block | {"shard": str((each ^ 1 << 63) - (1 << 63))} for each in kept]}

    peer.lies["shards"] = some
    with pytest.raises(ContradictionError):
        nodes.tops(node, 1)


def test_shards_of_other_workchains_are_passed_over(node: Toncenter, peer: LyingTon) -> None:
    peer.lies["shards"] = lambda truth, _asked: {"shards": [*truth["shards"], truth["shards"][0] | {"workchain": 1}]}
    assert [block.workchain for block in nodes.tops(node, 1)] == [0]


def test_accounts_are_in_the_shard_of_their_first_bits(node: Toncenter, chain: Simulator) -> None:
    low, high = 1 << 250, 0xF << 252
    assert [wire.is_within(low, each) for each in (ALL, LEFT, RIGHT)] == [True, True, False]
    assert [wire.is_within(high, each) for each in (ALL, LEFT, RIGHT)] == [True, False, True]
    chain.split(ALL)
    tops = nodes.tops(node, chain.mine())
    assert [wire.covering(tops, f"0:{each:064x}").prefix for each in (low, high)] == [LEFT, RIGHT]

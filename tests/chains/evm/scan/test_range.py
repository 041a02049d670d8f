"""Catching up by ranges: everything is found that single blocks would show, and a range that is too much shrinks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chains.base import Block, BlockScan, ProviderError
from chains.evm.nodes import evm_providers
from chains.evm.reader import CATCH_UP_FROM, EvmReader
from chains.evm.scan.range import FULL_BLOCKS_MAX, RANGE_MAX, RANGE_START, RangeSize
from chains.net.budget import BudgetSpentError
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_tokens
from tests.chains.conftest import CATALOGUE, OURS, THEIRS, evm_reader
from tests.peers.anvil import BUYER, HandMined, calldata
from tests.peers.json_rpc_node import Refusal
from tests.peers.lying_rpc import LyingRpc
from tests.peers.ours import Finds, scan_of

TOO_MANY = Refusal(-32005, "query returned more than 10000 results")


ours = Finds(lambda seen: {OURS} & set(seen))


def pay(node: HandMined, network: str, units: int, to: str = OURS) -> int:
    contract = str(CATALOGUE.pairs["USDT", network].contract)
    node.send(contract, data=calldata("transfer(address,uint256)", to, units))
    return node.mine()


@pytest.fixture
def ethereum(anvil: Callable[..., Anvil]) -> HandMined:
    node = HandMined(anvil("ethereum", block_time_s=None).url)
    install_tokens(node.url, CATALOGUE.pairs_on("ethereum"), BUYER, 1_000_000)
    return node


@pytest.fixture
def base(anvil: Callable[..., Anvil]) -> HandMined:
    """A network whose coin is not offered, with a history that no reorg reaches."""
    node = HandMined(anvil("base", block_time_s=None).url)
    install_tokens(node.url, CATALOGUE.pairs_on("base"), BUYER, 1_000_000)
    for number in range(5):
        node.ask("anvil_mine", hex(30))
        pay(node, "base", number + 1)
    pay(node, "base", 99, to=THEIRS)
    node.ask("anvil_mine", hex(300))
    return node


@pytest.fixture
def peers(base: HandMined) -> Iterator[list[LyingRpc]]:
    with LyingRpc(base.url, key="one") as first, LyingRpc(base.url, key="two") as second:
        yield [first, second]


def units(scans: Any) -> list[int]:
    return [transfer.units for scan in scans for transfer in scan.transfers]


def test_a_range_of_full_blocks_is_consecutive_and_complete(ethereum: HandMined) -> None:
    first = ethereum.height() + 1
    for number in range(CATCH_UP_FROM + 6):
        pay(ethereum, "ethereum", number + 1)
        if number % 3 == 0:
            ethereum.send(OURS, value=1000 + number)
    head = ethereum.mine()

    scans = evm_reader(ethereum.url).scan(first - 1, head, ours)

    assert [scan.block.height for scan in scans] == list(range(first, head + 1))
    assert all(b.block.parent_hash == a.block.hash for a, b in itertools.pairwise(scans))
    single = [scan_of(evm_reader(ethereum.url), height, ours) for height in range(first, head + 1)]
    assert list(scans) == single


@pytest.mark.parametrize("network", ["ethereum", "base"])
def test_no_header_of_a_range_is_believed_that_nothing_proves(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    node: HandMined = request.getfixturevalue(network)
    node.ask("anvil_mine", hex(8))
    ranges, asked = evm_reader(node.url, network=network)._ranges, []

    def refuse(block: Block) -> Block:
        asked.append(block.height)
        raise ProviderError("nobody else tells it")

    monkeypatch.setattr(ranges, "_witnessed", refuse)
    with pytest.raises(ProviderError, match="nobody else"):
        ranges.scan(1, node.height(), ours.addresses)
    assert asked == [1]


def test_near_the_head_blocks_are_read_one_by_one(ethereum: HandMined) -> None:
    ethereum.ask("anvil_mine", hex(CATCH_UP_FROM))
    head = ethereum.height()

    assert len(evm_reader(ethereum.url).scan(head - CATCH_UP_FROM, head, ours)) == 1
    assert evm_reader(ethereum.url).scan(head, head, ours) == ()


def test_matching_is_asked_once_for_a_whole_range(ethereum: HandMined) -> None:
    first = ethereum.height() + 1
    for _ in range(CATCH_UP_FROM + 1):
        pay(ethereum, "ethereum", 1, to=THEIRS)
    asked: list[set[str]] = []
    evm_reader(ethereum.url).scan(first - 1, ethereum.height(), Finds(lambda seen: asked.append(set(seen)) or ()))  # type: ignore[func-returns-value]

    assert asked == [{THEIRS}]


def test_where_only_tokens_are_offered_empty_blocks_are_left_out(base: HandMined) -> None:
    reader = evm_reader(base.url, network="base")
    reader._ranges.size.blocks = RANGE_MAX
    asked: list[str] = []
    with LyingRpc(base.url) as peer:
        reader = evm_reader(peer.url, network="base")
        reader._ranges.size.blocks = 170
        scans = reader.scan(0, base.height(), ours)
        asked = peer.asked

    assert units(scans) == [1, 2, 3, 4, 5]
    assert [scans[0].block.height, scans[-1].block.height] == [1, 170]
    assert len(scans) == 7
    assert asked.count("eth_getLogs") == 1
    assert asked.count("eth_getBlockByNumber") == 7


def test_blocks_within_reach_of_a_reorg_are_read_in_full(base: HandMined) -> None:
    reader = evm_reader(base.url, network="base")
    reader._ranges.size.blocks = RANGE_MAX
    first = base.height() - 100

    scans = reader.scan(first - 1, base.height(), ours)

    assert [scan.block.height for scan in scans] == list(range(first, first + FULL_BLOCKS_MAX))


def test_logs_that_another_provider_has_more_of_were_cut(peers: list[LyingRpc]) -> None:
    peers[0].hide_logs(keep=2)
    network = CATALOGUE.networks["base"]
    reader = EvmReader(
        network, CATALOGUE.pairs_on("base"), evm_providers(network, [peer.url for peer in peers], timeout_s=5)
    )
    reader._ranges.size.blocks = 170

    scans = reader.scan(0, 460, ours)

    assert units(scans) == [1, 2, 3, 4, 5]


def test_a_log_out_of_its_range_is_refused(peers: list[LyingRpc]) -> None:
    peers[0].lies["eth_getLogs"] = lambda truth, _params: [log | {"blockNumber": "0x1c0"} for log in truth]
    reader = evm_reader(peers[0].url, network="base")
    reader._ranges.size.blocks = 170

    with pytest.raises(ProviderError, match="a log of block 448 among those of 1 to 170"):
        reader._ranges.scan(1, 460, ours)
    # The block by itself is read instead.
    assert [scan.block.height for scan in reader.scan(0, 460, ours)] == [1]


@pytest.mark.parametrize("network", ["ethereum", "base"])
def test_a_log_of_another_fork_is_refused_in_a_range(request: pytest.FixtureRequest, network: str) -> None:
    node: HandMined = request.getfixturevalue(network)
    for _ in range(4):
        pay(node, network, 1)
    with LyingRpc(node.url) as peer:
        peer.lies["eth_getLogs"] = lambda truth, _params: [log | {"blockHash": "0x" + "11" * 32} for log in truth]
        ranges = evm_reader(peer.url, network=network)._ranges
        ranges.size.blocks = 170
        with pytest.raises(ProviderError, match="a log of another block"):
            ranges.scan(1, node.height(), ours.addresses)


def test_a_range_that_is_too_much_shrinks_until_it_passes(peers: list[LyingRpc]) -> None:
    def limited(truth: Any, params: list[Any]) -> Any:
        where = params[0]
        return (
            truth if "blockHash" in where or int(where["toBlock"], 16) - int(where["fromBlock"], 16) < 10 else TOO_MANY
        )

    peers[0].lies["eth_getLogs"] = limited
    reader = evm_reader(peers[0].url, network="base")
    calls, scans = 0, []
    first = 1
    while first < 170:
        blocks = reader.scan(first - 1, 460, ours)
        calls += 1
        scans += blocks
        first = blocks[-1].block.height + 1

    assert units(scans) == [1, 2, 3, 4, 5]
    assert calls < 60


def test_a_node_that_takes_no_ranges_at_all_is_read_block_by_block(peers: list[LyingRpc]) -> None:
    peers[0].lies["eth_getLogs"] = lambda truth, params: truth if "blockHash" in params[0] else TOO_MANY
    reader = evm_reader(peers[0].url, network="base")
    scans: list[BlockScan] = []
    for _ in range(12):
        scans += reader.scan(len(scans), 460, ours)

    assert [scan.block.height for scan in scans] == list(range(1, 13))


def test_a_step_that_has_nothing_left_asks_for_no_single_block_either(peers: list[LyingRpc]) -> None:
    reader = evm_reader(peers[0].url, network="base")
    with reader.budget(seconds=10, requests=5), pytest.raises(BudgetSpentError):
        reader.scan(299, 460, ours)
    assert reader._ranges.size.blocks == RANGE_START // 2


def test_one_nodes_head_makes_no_block_look_settled(base: HandMined, peers: list[LyingRpc]) -> None:
    """Blocks are left out only where no reorg reaches: a made-up head must not push that line up to the real one."""
    network = CATALOGUE.networks["base"]
    head = base.height()
    with LyingRpc(base.url, key="three") as third:
        peers[0].lies["eth_blockNumber"] = hex(head + 10_000)
        urls = [peer.url for peer in (*peers, third)]
        reader = EvmReader(network, CATALOGUE.pairs_on("base"), evm_providers(network, urls, timeout_s=5))
        reader.head()
        first = head - 100

        scans = reader.scan(first - 1, head + 10_000, ours)

    assert [scan.block.height for scan in scans] == list(range(first, first + FULL_BLOCKS_MAX))


def test_sizes_stay_within_bounds() -> None:
    size = RangeSize()
    assert size.blocks == RANGE_START
    for _ in range(40):
        size.grow()
    assert size.blocks == RANGE_MAX
    for _ in range(40):
        size.shrink()
    assert size.blocks == 1


def test_no_block_is_left_out_where_all_are_wanted(base: HandMined) -> None:
    """A departure from our own address may have no log."""
    base.ask("anvil_mine", hex(400))
    scans = evm_reader(base.url, network="base").scan(0, base.height(), ours, whole=True)
    assert [scan.block.height for scan in scans] == list(range(1, len(scans) + 1))
    assert len(scans) > 2

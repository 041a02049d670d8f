"""Scans blocks with more work than a step allows, on a real node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chains.net import several
from models.db.base import rows
from tests.actors.scan.world import World
from tests.models.builders import CATALOGUE
from tests.peers.json_rpc_node import Refusal

SPECKS = 500
NO_SUCH_METHOD = Refusal(-32601, "the method does not exist")


def specks(world: World, count: int = SPECKS) -> int:
    """Mine one block with many transfers of one wei to an invoice; return its height."""
    mine = world.coin_invoice()
    for _ in range(count):
        world.node.send(mine.address.lower(), value=1)
    height = world.mine()
    assert len(world.node.ask("eth_getBlockByNumber", hex(height), False)["transactions"]) == count
    return height


def asked(world: World, method: str) -> int:
    return sum(peer.asked.count(method) for peer in world.providers)


def test_five_hundred_small_transfers_in_a_block_cost_one_query(start: Callable[..., World]) -> None:
    world = start(RPC_STEP_REQUESTS="60")
    height = specks(world)

    world.poll()

    assert world.cursor()[0] == height
    assert rows("SELECT count(*) FROM deposits") == [(SPECKS,)]
    assert (asked(world, "eth_getBlockReceipts"), asked(world, "eth_getTransactionReceipt")) == (1, 0)


def test_a_block_beyond_one_steps_budget_is_read_in_several(start: Callable[..., World]) -> None:
    world = start(RPC_STEP_REQUESTS="60")
    world.providers[0].lies["eth_getBlockReceipts"] = NO_SUCH_METHOD
    height = specks(world)

    steps = 0
    while world.cursor()[0] < height:
        world.poll()
        steps += 1
        assert steps < 20, "the scan does not advance"

    assert steps > 1
    assert rows("SELECT count(*) FROM deposits") == [(SPECKS,)]
    # Receipts proved in one step are not queried in the next.
    assert asked(world, "eth_getTransactionReceipt") <= SPECKS + steps * several.FETCHERS


@pytest.mark.parametrize("network", ["bsc", "arbitrum"])
def test_a_lag_is_caught_up_on_nodes_without_block_receipts(start: Callable[..., World], network: str) -> None:
    world = start(network=network)
    mine = world.invoice(payer_units=10 * 10**18)
    provider = world.providers[0]
    provider.lies["eth_getBlockReceipts"] = NO_SUCH_METHOD
    # The filters of busy chains match every token.
    provider.lies["eth_getBlockByNumber"] = lambda truth, _params: truth and truth | {"logsBloom": "0x" + "ff" * 256}
    world.mine(30)
    world.pay(mine, 10 * 10 ** CATALOGUE.pairs["USDT", network].decimals)
    world.mine()
    head = world.mine(30)

    world.poll(3)

    assert world.cursor()[0] == head
    assert world.deposits("amount_units") == [(10 * 10**18,)]


def test_a_lag_is_caught_up_block_by_block_on_a_node_without_ranges(start: Callable[..., World]) -> None:
    world = start(network="arbitrum")
    world.providers[0].lies["eth_getLogs"] = lambda truth, params: (
        truth if "blockHash" in params[0] else Refusal(-32005, "no ranges here")
    )
    head = world.mine(40)

    world.poll(2)

    assert world.cursor()[0] == head

"""Blocks that cost more than a step has: full of specks to us, or on nodes that prove no silence. On a real node."""

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
    """Put so many transfers of one wei to an invoice into one block; returns its height."""
    mine = world.coin_invoice()
    for _ in range(count):
        world.node.send(mine.address.lower(), value=1)
    height = world.mine()
    assert len(world.node.ask("eth_getBlockByNumber", hex(height), False)["transactions"]) == count
    return height


def asked(world: World, method: str) -> int:
    return sum(peer.asked.count(method) for peer in world.providers)


def test_five_hundred_specks_in_a_block_cost_one_question(start: Callable[..., World]) -> None:
    world = start(RPC_STEP_REQUESTS="60")
    height = specks(world)

    world.poll()

    assert world.cursor()[0] == height
    assert rows("SELECT count(*) FROM deposits") == [(SPECKS,)]
    assert (asked(world, "eth_getBlockReceipts"), asked(world, "eth_getTransactionReceipt")) == (1, 0)


def test_a_block_that_needs_more_than_a_step_has_is_read_in_several(start: Callable[..., World]) -> None:
    world = start(RPC_STEP_REQUESTS="60")
    world.providers[0].lies["eth_getBlockReceipts"] = NO_SUCH_METHOD
    height = specks(world)

    steps = 0
    while world.cursor()[0] < height:
        world.poll()
        steps += 1
        assert steps < 20, "the scan does not get on"

    assert steps > 1
    assert rows("SELECT count(*) FROM deposits") == [(SPECKS,)]
    # What was proved in one step is not asked for in the next.
    assert asked(world, "eth_getTransactionReceipt") <= SPECKS + steps * several.FETCHERS


@pytest.mark.parametrize("network", ["bsc", "arbitrum"])
def test_a_lag_is_caught_up_with_on_nodes_without_whole_receipts(start: Callable[..., World], network: str) -> None:
    world = start(network=network)
    mine = world.invoice(payer_units=10 * 10**18)
    provider = world.providers[0]
    provider.lies["eth_getBlockReceipts"] = NO_SUCH_METHOD
    # Busy chains' filters admit every token.
    provider.lies["eth_getBlockByNumber"] = lambda truth, _params: truth and truth | {"logsBloom": "0x" + "ff" * 256}
    world.mine(30)
    world.pay(mine, 10 * 10 ** CATALOGUE.pairs["USDT", network].decimals)
    world.mine()
    head = world.mine(30)

    world.poll(3)

    assert world.cursor()[0] == head
    assert world.deposits("amount_units") == [(10 * 10**18,)]


def test_a_node_that_takes_no_ranges_is_caught_up_with_block_by_block(start: Callable[..., World]) -> None:
    world = start(network="arbitrum")
    world.providers[0].lies["eth_getLogs"] = lambda truth, params: (
        truth if "blockHash" in params[0] else Refusal(-32005, "no ranges here")
    )
    head = world.mine(40)

    world.poll(2)

    assert world.cursor()[0] == head

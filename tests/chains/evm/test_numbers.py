"""Numbers of EVM nodes that no row can hold: refused where they are read, as their node's contradiction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chains.base import COUNT_MAX, UNITS_MAX, ContradictionError, Place
from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from chains.evm.spends import balances
from chains.net.providers import RpcProviders
from tests.chains.conftest import CATALOGUE
from tests.peers.json_rpc_node import JsonRpcNode

ADDRESS, HASH = "0x" + "0a" * 20, "0x" + "0b" * 32
USDT = Place(address=ADDRESS, pair=CATALOGUE.pairs["USDT", "ethereum"])
FAR, MUCH = hex(COUNT_MAX + 1), hex(UNITS_MAX + 1)


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    with JsonRpcNode({"eth_chainId": "0x1"}) as made:
        yield made


def providers(node: JsonRpcNode) -> RpcProviders:
    return evm_providers(CATALOGUE.networks["ethereum"], [node.url], timeout_s=1.0)


def reader(node: JsonRpcNode) -> EvmReader:
    return EvmReader(CATALOGUE.networks["ethereum"], CATALOGUE.pairs_on("ethereum"), providers(node))


@pytest.mark.parametrize(
    ("method", "answer", "ask"),
    [
        ("eth_blockNumber", FAR, lambda node: reader(node).head()),
        ("eth_getTransactionCount", FAR, lambda node: reader(node).used_counters(ADDRESS, 8)),
        ("eth_getBalance", MUCH, lambda node: reader(node).balance(ADDRESS, HASH)),
        ("eth_getBalance", MUCH, lambda node: balances.newest(providers(node), ADDRESS)),
        ("eth_call", f"0x{UNITS_MAX + 1:064x}", lambda node: balances.at_block(providers(node), USDT, HASH)),
    ],
)
def test_a_number_that_no_row_can_hold_is_refused(
    node: JsonRpcNode, method: str, answer: str, ask: Callable[[JsonRpcNode], Any]
) -> None:
    node.answers[method] = lambda *_: answer
    with pytest.raises(ContradictionError):
        ask(node)


def test_a_final_height_beyond_the_rows_range_is_refused(node: JsonRpcNode) -> None:
    header = dict.fromkeys(("hash", "parentHash"), HASH) | {"number": FAR, "timestamp": "0x1"}
    node.answers["eth_getBlockByNumber"] = lambda *_: header
    assert reader(node).final_height() is None


def test_a_transaction_is_located_at_no_height_that_no_row_can_hold(node: JsonRpcNode) -> None:
    receipt = {"transactionHash": HASH, "blockHash": HASH, "status": "0x1", "logs": [], "blockNumber": FAR}
    node.answers["eth_getTransactionReceipt"] = lambda *_: receipt
    assert reader(node).locate(HASH) is None

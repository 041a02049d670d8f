"""Coin that contracts transfer, read from traces: reverted and delegated calls moved nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chains.base import Block, ProviderError
from chains.evm.scan import internal
from chains.evm.scan.internal import internal_transfers
from chains.net.json_rpc import JsonRpc
from tests.chains.conftest import FORWARDER, OURS, THEIRS, Chain
from tests.peers.anvil import calldata
from tests.peers.json_rpc_node import JsonRpcNode, Refusal

TXID = "0x" + "01" * 32
BLOCK = Block(
    height=5,
    hash="0x" + "aa" * 32,
    parent_height=4,
    parent_hash="0x" + "bb" * 32,
    time=datetime(2026, 1, 1, tzinfo=UTC),
)
NO_METHOD = Refusal(-32601, "no such method")


def trace(path: list[int], *, value: int = 7, **changes: Any) -> dict[str, Any]:
    action = {"from": THEIRS, "to": OURS, "value": hex(value), "callType": "call"} | changes.pop("action", {})
    honest = {"action": action, "traceAddress": path, "type": "call", "transactionHash": TXID, "blockHash": BLOCK.hash}
    return honest | changes


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    with JsonRpcNode({"trace_block": NO_METHOD, "debug_traceBlockByNumber": NO_METHOD}) as node:
        yield node


def internal_units(node: JsonRpcNode) -> list[tuple[str, int]]:
    transfers = internal_transfers(JsonRpc(node.url, timeout_s=5), BLOCK, OURS, "ETH")
    return [(transfer.ordinal, transfer.units) for transfer in transfers]


@pytest.mark.parametrize("method", ["trace_block", "callTracer"])
def test_a_real_node_names_the_transaction(chain: Chain, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "callTracer":
        monkeypatch.setattr(internal, "_by_trace_block", internal._by_call_tracer)
    txid = chain.node.send(FORWARDER, value=5, data=calldata("forward(address)", OURS))
    chain.node.send(FORWARDER, value=6, data=calldata("forward_and_revert(address)", OURS))
    chain.node.send(OURS, value=9)
    block = chain.reader.block(chain.node.mine())
    assert block is not None

    [transfer] = chain.reader.internal_transfers(block, OURS)

    assert (transfer.txid, transfer.ordinal, transfer.units) == (txid, "trace:0", 5)
    assert (transfer.sender, transfer.recipient) == (FORWARDER, OURS)


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        pytest.param([trace([0, 2])], [("trace:0.2", 7)], id="nested"),
        pytest.param([trace([])], [], id="the transaction itself is no internal transfer"),
        pytest.param([trace([0], value=0)], [], id="nothing"),
        pytest.param([trace([0], error="Reverted")], [], id="reverted"),
        pytest.param([trace([0], error="out of gas"), trace([0, 1])], [], id="reverted with its caller"),
        pytest.param([trace([], error="Reverted"), trace([0])], [], id="reverted with its transaction"),
        pytest.param([trace([1], error="Reverted"), trace([0])], [("trace:0", 7)], id="beside what was reverted"),
        pytest.param([trace([0], action={"callType": "delegatecall"})], [], id="delegated"),
        pytest.param([trace([0], action={"to": THEIRS})], [], id="to others"),
        pytest.param(
            [trace([0], type="suicide", action={"address": THEIRS, "refundAddress": OURS, "balance": "0x9"})],
            [("trace:0", 9)],
            id="left behind by a contract that ended",
        ),
        pytest.param([trace([0], type="create", action={"to": OURS})], [], id="a creation"),
        pytest.param([trace([0], transactionHash=None, type="reward")], [], id="a reward"),
    ],
)
def test_a_trace_is_read_as_transfers(
    node: JsonRpcNode, traces: list[dict[str, Any]], expected: list[tuple[str, int]]
) -> None:
    node.answers["trace_block"] = traces

    assert internal_units(node) == expected


def test_a_trace_of_another_block_is_refused(node: JsonRpcNode) -> None:
    node.answers["trace_block"] = [trace([0], blockHash="0x" + "cc" * 32)]

    with pytest.raises(ProviderError, match="another block"):
        internal_units(node)


def frame(**changes: Any) -> dict[str, Any]:
    return {"type": "CALL", "from": THEIRS, "to": OURS, "value": "0x7"} | changes


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        pytest.param(frame(calls=[frame()]), [("trace:0", 7)], id="nested"),
        pytest.param(frame(calls=[frame(error="execution reverted", calls=[frame()])]), [], id="undone"),
        pytest.param(frame(error="execution reverted", calls=[frame()]), [], id="all undone"),
        pytest.param(frame(calls=[frame(type="DELEGATECALL")]), [], id="delegated"),
        pytest.param(frame(calls=[frame(type="SELFDESTRUCT")]), [("trace:0", 7)], id="left behind"),
    ],
)
def test_a_call_tracer_is_read_as_transfers(
    node: JsonRpcNode, top: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    node.answers["debug_traceBlockByNumber"] = [{"txHash": TXID, "result": top}]

    assert internal_units(node) == expected

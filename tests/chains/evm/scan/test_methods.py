"""Methods that a node lacks are reported with their consequence; a mere failure is not reported as a lack."""

from __future__ import annotations

from typing import Any

import pytest

from chains.base import ProviderError
from chains.evm.scan.methods import lacking
from chains.net.json_rpc import JsonRpc
from tests.peers.anvil import HandMined
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import LyingRpc

MISSING = Refusal(-32601, "the method does not exist")


def named(node: HandMined, *, is_coin_offered: bool = True, tag: str | None = "finalized", **lies: Any) -> list[str]:
    with LyingRpc(node.url) as peer:
        peer.lies |= lies
        lines = lacking(JsonRpc(peer.url, timeout_s=5), finality_tag=tag, is_coin_offered=is_coin_offered)
    return [line.partition(":")[0] for line in lines]


def test_a_node_that_has_all_lacks_nothing(ethereum: HandMined) -> None:
    assert named(ethereum) == []


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("eth_getLogs", "lacks eth_getLogs"),
        ("eth_getBlockReceipts", "lacks eth_getBlockReceipts"),
        ("eth_getBlockByNumber", "lacks eth_getBlockByNumber finalized"),
    ],
)
@pytest.mark.parametrize("lie", [MISSING, None], ids=["refused", "null"])
def test_each_method_that_is_missing_is_named(ethereum: HandMined, method: str, words: str, lie: object) -> None:
    assert named(ethereum, **{method: lie}) == [words]


def test_one_way_of_tracing_is_enough(ethereum: HandMined) -> None:
    assert named(ethereum, trace_block=MISSING) == []
    assert named(ethereum, debug_traceBlockByNumber=MISSING) == []
    both = {"trace_block": MISSING, "debug_traceBlockByNumber": MISSING}
    assert named(ethereum, **both) == ["lacks trace_block and debug_traceBlockByNumber"]
    assert named(ethereum, is_coin_offered=False, **both) == []


def test_without_a_tag_in_the_catalogue_none_is_asked_for(ethereum: HandMined) -> None:
    assert named(ethereum, tag=None, eth_getBlockByNumber=MISSING) == []


def test_a_node_that_fails_otherwise_is_not_said_to_lack_anything(ethereum: HandMined) -> None:
    with pytest.raises(ProviderError, match="502"):
        named(ethereum, eth_getBlockReceipts=Raw(status=502))

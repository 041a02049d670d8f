"""Finality by several providers on a real node: one alone neither delays a credit nor causes it."""

from __future__ import annotations

import contextlib

import pytest

from chains.evm.nodes import evm_providers
from chains.evm.reader import EvmReader
from tests.chains.conftest import CATALOGUE
from tests.peers.anvil import HandMined
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import LyingRpc


def final_heights(node: HandMined, *answer: object) -> int | None:
    """Return the final height of a ten-block chain by providers that each report this final block, or the truth."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(LyingRpc(node.url, key=f"provider-{number}")) for number in range(len(answer))]
        for peer, lie in zip(peers, answer, strict=True):
            if isinstance(lie, int):
                peer.lies["eth_getBlockByNumber"] = lambda truth, _params, height=lie: truth | {"number": hex(height)}
            elif lie is not None:
                peer.failure = Raw(status=502)
        network = CATALOGUE.networks["ethereum"]
        providers = evm_providers(network, [peer.url for peer in peers], timeout_s=5)
        return EvmReader(network, CATALOGUE.pairs_on("ethereum"), providers).final_height()


@pytest.mark.parametrize(
    ("heads", "is_known"),
    [
        pytest.param((None, None, 10**9), True, id="one of three cannot open it"),
        pytest.param((0, None, None), True, id="nor stop it"),
        pytest.param((10**9, None), True, id="one of two cannot open it"),
        pytest.param(("down", 10**9), False, id="nor alone, while the other is down"),
        pytest.param(("down", 10**9, None), True, id="nor beside one of three that is down"),
        pytest.param((None,), True, id="a lone provider is believed"),
    ],
)
def test_one_provider_alone_does_not_decide_finality(
    ethereum: HandMined, heads: tuple[object, ...], *, is_known: bool
) -> None:
    ethereum.ask("anvil_mine", hex(80))
    truth = int(ethereum.ask("eth_getBlockByNumber", "finalized", False)["number"], 16)
    assert truth > 0

    assert final_heights(ethereum, *heads) == (truth if is_known else None)

"""The sanctions list on chain, by most providers' word."""

from collections.abc import Callable, Iterator

import pytest

from chains.base import ProviderError
from chains.evm.nodes import evm_providers
from chains.evm.spends.sanctions import OracleScreener
from chains.registry import screener
from devstack.evm.anvil import Anvil
from tests.chains.conftest import CATALOGUE, OURS, THEIRS
from tests.chains.test_registry import settings
from tests.peers.anvil import HandMined
from tests.peers.lying_rpc import DOWN, LyingRpc

ORACLE = "0x40C57923924B5c5c5455c48D93317139ADDaC8fb"
ETHEREUM = CATALOGUE.networks["ethereum"]
YES, NO = f"0x{1:064x}", f"0x{0:064x}"
# Answers whether the call is isSanctioned(THEIRS): the whole calldata after its selector, and the selector itself.
CODE = (
    "0x600435" + "73" + THEIRS[2:] + "14"  # CALLDATALOAD(4) == THEIRS
    "5f3560e01c63df592f7d14"  # CALLDATALOAD(0) >> 224 == the selector
    "16" "5f52" "60205ff3"  # AND, MSTORE(0), RETURN(0, 32)
)  # fmt: skip


@pytest.fixture
def peers(anvil: Callable[..., Anvil]) -> Iterator[list[LyingRpc]]:
    node = HandMined(anvil("ethereum", block_time_s=None).url)
    node.ask("anvil_setCode", ORACLE, CODE)
    with LyingRpc(node.url, key="1") as one, LyingRpc(node.url, key="2") as two, LyingRpc(node.url, key="3") as three:
        yield [one, two, three]


def screening(peers: list[LyingRpc]) -> OracleScreener:
    return OracleScreener(evm_providers(ETHEREUM, [p.url for p in peers], timeout_s=5), ORACLE)


def test_the_oracle_decides_which_addresses_are_listed(peers: list[LyingRpc]) -> None:
    network = screening(peers)

    assert (network.is_sanctioned(THEIRS), network.is_sanctioned(OURS)) == (True, False)


def test_without_an_oracle_no_address_is_listed(peers: list[LyingRpc]) -> None:
    assert screener(ETHEREUM, settings(ETHEREUM_RPC_URLS=peers[0].url, BSC_SANCTIONS_ORACLE=ORACLE)) is None
    assert peers[0].asked == []


@pytest.mark.parametrize(("lie", "address", "is_listed"), [(NO, THEIRS, True), (YES, OURS, False)])
def test_one_liar_among_three_decides_nothing(
    peers: list[LyingRpc], lie: str, address: str, *, is_listed: bool
) -> None:
    peers[0].lies["eth_call"] = lie

    assert screening(peers).is_sanctioned(address) is is_listed


def test_as_many_on_both_sides_is_not_known(peers: list[LyingRpc]) -> None:
    peers[0].lies["eth_call"] = YES

    with pytest.raises(ProviderError, match="disagree"):
        screening(peers[:2]).is_sanctioned(OURS)


@pytest.mark.parametrize("answer", ["0x", DOWN])
def test_a_silent_oracle_neither_lists_nor_clears_an_address(peers: list[LyingRpc], answer: object) -> None:
    for peer in peers:
        peer.lies["eth_call"] = answer

    with pytest.raises(ProviderError):
        screening(peers).is_sanctioned(OURS)


def test_the_operator_names_the_oracle() -> None:
    named = settings(ETHEREUM_RPC_URLS="http://127.0.0.1:1", ETHEREUM_SANCTIONS_ORACLE=ORACLE)
    made = screener(ETHEREUM, named)

    assert isinstance(made, OracleScreener)
    assert made.oracle == ORACLE
    with pytest.raises(LookupError, match="bsc is not served"):
        screener(CATALOGUE.networks["bsc"], named)

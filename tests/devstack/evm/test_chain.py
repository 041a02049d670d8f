"""The demonstration's steps on an EVM chain: pay like a wallet, and read the balances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devstack import chains
from devstack.chains import Site
from devstack.evm.anvil import Anvil
from devstack.evm.chain import EvmChain
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from tests.models.builders import CATALOGUE
from tests.peers.anvil import HandMined

KEY = "0x" + "b1" * 32


@pytest.mark.parametrize("currency", ["ETH", "USDT"])
def test_the_buyer_pays_and_the_balance_grows(anvil: Callable[..., Anvil], currency: str) -> None:
    node = anvil("ethereum", block_time_s=None)
    chain = EvmChain(node, pairs=CATALOGUE.pairs_on("ethereum"), buyer_key=KEY)
    chain.equip()
    pair, stranger = CATALOGUE.pairs[currency, "ethereum"], chain.stranger()
    assert chain.balance(pair, stranger) == 0

    # Mined by hand: a node that mines by itself answers before it has mined.
    by_hand = HandMined(node.url)
    txid = chain.pay(pair, to=stranger, units=7)
    by_hand.mine()

    assert by_hand.receipt(txid)["status"] == "0x1"
    assert chain.balance(pair, stranger) == 7
    assert chain.stranger() != stranger


def test_a_family_is_found_and_its_chain_made_of_a_site(anvil_program: Path, tmp_path: Path, leash: Leash) -> None:
    network = CATALOGUE.networks["bsc"]
    site = Site(
        network=network, pairs=CATALOGUE.pairs_on("bsc"), program=anvil_program, folder=tmp_path / "bsc",
        port=free_port(), leash=leash, buyer_key=KEY,
    )  # fmt: skip
    chain = chains.development(network.family).chain(site)
    try:
        chain.start()
        chain.equip()
        assert HandMined(chain.url).ask("eth_chainId") == hex(int(network.chain_identity))
        assert chain.tokens.keys() == {pair.currency for pair in site.pairs if pair.contract}
        assert KEY not in repr(site)
    finally:
        chain.stop()


def test_a_family_without_a_development_chain_is_refused() -> None:
    assert not chains.is_developed("toy")
    with pytest.raises(LookupError, match="toy networks have no development chain"):
        chains.development("toy")

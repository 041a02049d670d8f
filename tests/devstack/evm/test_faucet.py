"""The hot wallet of a development chain gets gas by a transaction, and not from the buyer."""

from __future__ import annotations

from collections.abc import Callable

from devstack.evm import faucet
from devstack.evm.anvil import Anvil
from devstack.evm.chain import HOT_COINS, WEI, EvmChain
from models.treasury import addresses
from tests.models.builders import CATALOGUE, begin_scan
from tests.peers.anvil import HandMined

HOT = "0x" + "a0" * 20


def test_an_anvil_sends_for_the_faucet(anvil: Callable[..., Anvil]) -> None:
    chain = HandMined(anvil("ethereum", block_time_s=None).url)
    faucet.give(chain.url, HOT, 5 * WEI)
    height = chain.mine()

    (sent,) = chain.ask("eth_getBlockByNumber", hex(height), True)["transactions"]
    assert (sent["from"], sent["to"], int(sent["value"], 16)) == (faucet.SENDER, HOT, 5 * WEI)
    assert int(chain.ask("eth_getBalance", HOT, "latest"), 16) == 5 * WEI


def test_the_hot_wallet_is_funded_once_it_is_named_and_the_scan_began(
    database: str, anvil: Callable[..., Anvil]
) -> None:
    del database
    node = anvil("ethereum")
    chain = EvmChain(node, pairs=CATALOGUE.pairs_on("ethereum"), buyer_key="0x" + "b1" * 32)
    chain.equip()
    hand = HandMined(node.url)
    chain.tick()
    assert int(hand.ask("eth_getTransactionCount", faucet.SENDER, "pending"), 16) == 0

    assert addresses.pin_hot("ethereum", HOT)
    begin_scan("ethereum", height=0)
    for _ in range(3):
        chain.tick()
    hand.mine()
    assert int(hand.ask("eth_getBalance", HOT, "latest"), 16) == HOT_COINS * WEI
    assert int(hand.ask("eth_getTransactionCount", faucet.SENDER, "latest"), 16) == 1

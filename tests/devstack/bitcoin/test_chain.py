"""The demonstration's steps on a bitcoin chain: pay like a wallet, and read the balances."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devstack import chains
from devstack.bitcoin.chain import BitcoinChain
from devstack.bitcoin.clock import BitcoinClock, newest_time
from devstack.bitcoin.node import BitcoinNode
from devstack.bitcoin.program import OWN, NoBitcoinNodeError, find_node
from devstack.chains import Site
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from models.deposits import cursors
from models.treasury import addresses
from tests.models.builders import CATALOGUE

KEY = "0x" + "b1" * 32
PAIR = CATALOGUE.pairs["BTC", "bitcoin"]
Start = Callable[[], BitcoinNode]


def test_the_buyer_pays_several_at_once_and_balances_grow(regtest: Start) -> None:
    chain = BitcoinChain(regtest(), buyer_key=KEY)
    chain.equip()
    strangers = [chain.stranger() for _ in range(5)]
    assert chain.balance(PAIR, strangers[0]) == 0

    txids = [chain.pay(PAIR, to=stranger, units=7_000) for stranger in strangers]
    chain._mine()

    assert len(set(txids)) == 5
    assert [chain.balance(PAIR, stranger) for stranger in strangers] == [7_000] * 5


def test_a_family_is_found_and_its_chain_made_of_a_site(tmp_path: Path, leash: Leash) -> None:
    network = CATALOGUE.networks["bitcoin"]
    site = Site(
        network=network, pairs=(PAIR,), program=OWN, folder=tmp_path / "bitcoin", port=free_port(), leash=leash,
        buyer_key=KEY,
    )  # fmt: skip
    chain = chains.development(network.family).chain(site)
    try:
        chain.start()
        chain.equip()
        assert (site.folder / "bitcoin.conf").stat().st_mode & 0o077 == 0
        assert chain.balance(PAIR, chain._buyer.address) > 0  # type: ignore[attr-defined]
        assert KEY not in repr(site)
    finally:
        chain.stop()


def test_a_block_comes_every_second_and_the_hot_wallet_has_coins_once_it_is_named(
    regtest: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = regtest()
    chain, hot = BitcoinChain(node, buyer_key=KEY), BitcoinChain(node, buyer_key=KEY).stranger()
    named: list[str | None] = [None]
    monkeypatch.setattr(addresses, "address", lambda _network, _role: named[0])
    monkeypatch.setattr(cursors, "read", lambda _network: object())
    chain.tick()
    named[0] = hot
    first = newest(chain)
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        chain.tick()
        time.sleep(0.02)

    assert 2 <= newest(chain) - first <= 3
    assert chain.balance(PAIR, hot) == 10 * 10**8


def newest(chain: BitcoinChain) -> int:
    return chain._rpc().call("getblockcount", [], int)


def test_the_clock_moves_the_chain_and_the_chain_goes_on_from_there(regtest: Start) -> None:
    chain = BitcoinChain(regtest(), buyer_key=KEY)
    chain.equip()
    clock, target_s = BitcoinClock(chain.url, 5.0), int(time.time()) + 10**6
    clock.check()
    assert clock.advance(target_s)
    assert newest_time(chain._rpc()) == target_s

    chain._mine()
    chain._mine()
    assert newest_time(chain._rpc()) == target_s + 2


def test_the_program_that_the_environment_names_comes_first_and_our_own_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bitcoind"
    program.touch(mode=0o755)

    assert find_node({"BITCOIND": str(program), "PATH": "/nowhere"}, tmp_path) == program
    assert find_node({"PATH": str(tmp_path)}, tmp_path) == program
    assert find_node({"PATH": "/nowhere"}, tmp_path) == OWN
    with pytest.raises(NoBitcoinNodeError, match="BITCOIND names"):
        find_node({"BITCOIND": str(tmp_path / "nothing")}, tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(NoBitcoinNodeError, match="no engine"):
        find_node({"PATH": "/nowhere"}, tmp_path)

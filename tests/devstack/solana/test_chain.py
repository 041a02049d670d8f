"""The demonstration's steps on a Solana chain: pay like a wallet, read the balances, move the clock."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from chains.net.json_rpc import JsonRpc, RpcError
from devstack.chains import Site
from devstack.solana.chain import SolanaChain
from devstack.solana.clock import SolanaClock
from devstack.solana.family import DEVELOPMENT
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from tests.devstack.waiting import wait_for
from tests.models.builders import CATALOGUE
from tests.peers.lying_rpc import LyingRpc
from tests.peers.solana.chain import NETWORK, SOL, Solana

KEY = "0x" + "b1" * 32
PAIRS = CATALOGUE.pairs_on("solana")


@pytest.fixture
def chain(tmp_path: Path, leash: Leash) -> Iterator[SolanaChain]:
    site = Site(
        network=NETWORK, pairs=PAIRS, program=DEVELOPMENT.find({}, tmp_path), folder=tmp_path / "solana",
        port=free_port(), leash=leash, buyer_key=KEY,
    )  # fmt: skip
    made = DEVELOPMENT.chain(site)
    assert isinstance(made, SolanaChain)
    made.start()
    yield made
    made.stop()


def slot(chain: SolanaChain) -> int:
    return JsonRpc(chain.url, timeout_s=5).call("getSlot", [], int)


def test_a_killed_chain_keeps_the_buyers_payment(chain: SolanaChain) -> None:
    chain.equip()
    sol, usdt = CATALOGUE.pairs["SOL", "solana"], CATALOGUE.pairs["USDT", "solana"]
    stranger = chain.stranger()
    assert chain.stranger() != stranger
    assert chain.balance(usdt, stranger) == 0
    for pair in (sol, usdt):
        chain.pay(pair, to=stranger, units=7 * SOL)
    wait_for(lambda: chain.balance(usdt, stranger) == 7 * SOL)

    assert chain.pid is not None
    os.kill(chain.pid, signal.SIGKILL)
    wait_for(lambda: chain.child is not None and chain.child.exit_code() is not None)
    chain.start()
    chain.equip()

    assert [chain.balance(pair, stranger) for pair in (sol, usdt)] == [7 * SOL, 7 * SOL]
    assert chain.tokens == {pair.currency: pair.contract for pair in PAIRS if pair.contract}
    before = slot(chain)
    wait_for(lambda: slot(chain) > before)


def test_the_clock_brings_the_chain_to_a_moment() -> None:
    with Solana() as solana:
        clock = SolanaClock(solana.url, 5)
        clock.check()
        target_s = int(solana.chain.now_s()) + 1_000

        assert clock.advance(target_s)
        assert target_s <= solana.chain.head.time_s < target_s + 60


def test_the_clock_gives_no_orders_to_a_node_of_another_make() -> None:
    with Solana() as solana, LyingRpc(solana.url) as node:
        node.lies["getVersion"] = {"solana-core": "4.3.0", "feature-set": 1}

        assert not SolanaClock(node.url, 5).advance(int(solana.chain.now_s()) + 1_000)
        assert len(solana.chain.blocks) == 1


def test_a_node_answers_lists_and_refuses_what_is_no_question() -> None:
    with Solana() as solana:
        rpc = JsonRpc(solana.url, timeout_s=5)
        assert rpc.batch("getBlockTime", [[solana.chain.head.slot]], int) == [solana.chain.head.time_s]
        with pytest.raises(RpcError, match="Method not found"):
            rpc.call("getSecrets", [], int)
        with pytest.raises(RpcError, match="cannot go back"):
            rpc.call("development_reorg", [1_000], int)

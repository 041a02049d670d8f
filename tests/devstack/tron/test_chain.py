"""The demonstration's steps on a TRON chain: pay like a wallet, read the balances, move the clock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chains.net.rest import RestNode
from devstack.chains import Site
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from devstack.tron.chain import TronChain
from devstack.tron.clock import TronClock
from devstack.tron.family import DEVELOPMENT
from tests.devstack.waiting import wait_for
from tests.models.builders import CATALOGUE
from tests.peers.tron.chain import NETWORK, TRX, Tron
from tests.peers.tron.lying import LyingRest

KEY = "0x" + "b1" * 32
PAIRS = CATALOGUE.pairs_on("tron")


@pytest.fixture
def chain(tmp_path: Path, leash: Leash) -> Iterator[TronChain]:
    site = Site(
        network=NETWORK, pairs=PAIRS, program=DEVELOPMENT.find({}, tmp_path), folder=tmp_path / "tron",
        port=free_port(), leash=leash, buyer_key=KEY,
    )  # fmt: skip
    made = DEVELOPMENT.chain(site)
    assert isinstance(made, TronChain)
    made.start()
    yield made
    made.stop()


def height(chain: TronChain) -> int:
    answer = RestNode(chain.url, timeout_s=5).ask("wallet/getnowblock", {}, dict[str, Any])
    return int(answer["block_header"]["raw_data"].get("number", 0))


def test_a_killed_chain_keeps_the_buyers_payment(chain: TronChain) -> None:
    chain.equip()
    trx, usdt = CATALOGUE.pairs["TRX", "tron"], CATALOGUE.pairs["USDT", "tron"]
    stranger = chain.stranger()
    assert chain.stranger() != stranger
    for pair in (trx, usdt):
        chain.pay(pair, to=stranger, units=7 * TRX)
    wait_for(lambda: chain.balance(usdt, stranger) == 7 * TRX)

    assert chain.pid is not None
    os.kill(chain.pid, signal.SIGKILL)
    wait_for(lambda: chain.child is not None and chain.child.exit_code() is not None)
    chain.start()
    chain.equip()

    assert [chain.balance(pair, stranger) for pair in (trx, usdt)] == [7 * TRX, 7 * TRX]
    assert chain.tokens == {"USDT": usdt.contract}
    before = height(chain)
    wait_for(lambda: height(chain) > before)


def test_the_clock_brings_the_chain_to_a_moment() -> None:
    with Tron() as tron:
        clock = TronClock(tron.url, 5)
        clock.check()
        target_s = tron.chain.now_ms() // 1_000 + 1_000

        assert clock.advance(target_s)
        assert tron.chain.head.time_ms >= target_s * 1_000
        assert tron.chain.head.time_ms < (target_s + 60) * 1_000


def test_the_clock_gives_no_orders_to_a_node_of_another_make() -> None:
    tron = Tron()
    with LyingRest(tron.chain) as node:
        node.lies["wallet/getnodeinfo"] = {"configNodeInfo": {"codeVersion": "4.8.1"}}

        assert not TronClock(node.url, 5).advance(tron.chain.now_ms() // 1_000 + 1_000)
        assert tron.chain.head.height == 0


def test_moving_the_clock_loads_nothing_that_executes_contracts() -> None:
    program = "import sys, devstack.tron.family; print(sorted({'eth', 'trie'} & sys.modules.keys()))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert outcome.stdout == "[]\n"

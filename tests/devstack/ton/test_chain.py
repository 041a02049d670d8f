"""The demonstration's steps on a TON chain: pay like a wallet, read the balances, move the clock."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.addresses.addresses import display
from devstack.chains import Site
from devstack.supervise.leash import Leash
from devstack.supervise.ports import free_port
from devstack.ton.chain import TonChain
from devstack.ton.client import Toncenter
from devstack.ton.clock import TonClock
from devstack.ton.family import DEVELOPMENT
from tests.chains.ton.running import shared_library
from tests.devstack.waiting import wait_for
from tests.models.builders import CATALOGUE
from tests.peers.json_rpc_node import Refusal
from tests.peers.ton.chain import NETWORK, TON, Ton
from tests.peers.ton.lying import LyingTon

KEY = "0x" + "b1" * 32
PAIRS = CATALOGUE.pairs_on("ton")


@pytest.fixture
def chain(tmp_path: Path, leash: Leash) -> Iterator[TonChain]:
    site = Site(
        network=NETWORK, pairs=PAIRS, program=shared_library(), folder=tmp_path / "ton", port=free_port(), leash=leash,
        buyer_key=KEY,
    )  # fmt: skip
    made = DEVELOPMENT.chain(site)
    assert isinstance(made, TonChain)
    made.start()
    yield made
    made.stop()


def seqno(chain: TonChain) -> int:
    return int(Toncenter(chain.url, timeout_s=5).ask("getMasterchainInfo")["last"]["seqno"])


def test_a_killed_chain_keeps_the_buyers_payments(chain: TonChain) -> None:
    chain.equip()
    coin, usdt = CATALOGUE.pairs["TON", "ton"], CATALOGUE.pairs["USDT", "ton"]
    stranger = chain.stranger()
    assert chain.stranger() != stranger
    assert chain.balance(usdt, stranger) == 0
    chain.pay(usdt, to=display(NETWORK, stranger), units=7 * TON)
    chain.pay(coin, to=display(NETWORK, stranger), units=7 * TON)
    wait_for(lambda: chain.balance(usdt, stranger) > 0 and chain.balance(coin, stranger) > TON)
    # A nanoton comes with the notice of the jettons, and a second's rent is as much.
    assert chain.balance(coin, stranger) - 7 * TON in range(-1, 2)

    paid = chain.balance(coin, stranger)
    assert chain.pid is not None
    os.kill(chain.pid, signal.SIGKILL)
    wait_for(lambda: chain.child is not None and chain.child.exit_code() is not None)
    chain.start()
    chain.equip()

    assert [chain.balance(pair, stranger) for pair in (coin, usdt)] == [paid, 7 * TON]
    assert chain.tokens == {pair.currency: pair.contract for pair in PAIRS if pair.contract}
    before = seqno(chain)
    wait_for(lambda: seqno(chain) > before)


def test_the_clock_brings_the_chain_to_a_moment() -> None:
    with Ton() as ton:
        clock = TonClock(ton.url, 5)
        clock.check()
        target_s = ton.chain.now() + 1_000

        assert clock.advance(target_s)
        assert target_s <= ton.chain.head.time < target_s + 60


def test_the_clock_gives_no_orders_to_a_node_of_another_make() -> None:
    ton = Ton()
    with LyingTon(ton.chain) as node:
        node.lies["developmentAdvance"] = Refusal(404, "method not found")
        before = ton.chain.head
        assert not TonClock(node.url, 5).advance(ton.chain.now() + 1_000)
        assert ton.chain.head == before

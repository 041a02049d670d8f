"""Departures that one of three providers hides: in its blocks, by its counts of slots, or as a payment. On anvil."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actors import context
from actors.recovery import missing
from actors.signer import sign
from chains import registry
from devstack.evm.anvil import Anvil
from models.db.base import execute
from tests.actors.recovery.test_missing import ETHER, heal, is_whole, lose
from tests.actors.recovery.world import RecoveryWorld
from tests.models.builders import CATALOGUE
from tests.peers.paper_chain import transfer

# Other databases are copied from it.
pytestmark = pytest.mark.fresh_database

OTHER = "0x" + "5e" * 20
FAR = 100


@pytest.fixture(autouse=True)
def _rested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "REST_S", 0.0)
    missing._rests_until.clear()


def hide(world: RecoveryWorld, **change: str) -> None:
    """Let the first provider name others in the hot wallet's transactions, in whole blocks."""
    hot = world.hot.lower()

    def changed(each: dict[str, Any]) -> dict[str, Any]:
        return each | change if each["from"].lower() == hot else each

    world.providers[0].lies["eth_getBlockByNumber"] = lambda truth, params: (
        truth | {"transactions": [changed(each) for each in truth["transactions"]]} if truth and params[1] else truth
    )


@pytest.fixture
def base(database: str, anvil: Callable[..., Anvil], request: pytest.FixtureRequest) -> Iterator[RecoveryWorld]:
    """Base, whose coin is not offered: far from the head only logs are read. Parameter: the number of providers."""
    made = RecoveryWorld(database, anvil, network="base")
    for opened in made.opened(gas_wei=0, providers=request.param):
        made.node.ask("anvil_setBalance", made.hot, hex(5 * ETHER))
        made.reconcile()
        made.pay_out("first", made.recipient())
        made.paid_invoice()
        yield opened


@pytest.mark.parametrize(("base", "used"), [(3, None), (3, "0x1"), (2, "0x2")], indirect=["base"])
def test_slots_that_one_provider_hides_are_found(base: RecoveryWorld, used: str | None) -> None:
    """It names other senders in its blocks. used: its count of used slots at old blocks; None for the true one."""
    done = lose(base, base.keep)
    hot = base.hot.lower()
    hide(base, **{"from": OTHER})
    base.catch_up()
    base.order("second", base.recipient())
    base.sign()
    if used is not None:
        base.providers[0].lies["eth_getTransactionCount"] = lambda truth, params: (
            used if params[0].lower() == hot and params[1].startswith("0x") else truth
        )
    for _ in range(6):
        heal(base)
        base.advance()
    assert is_whole(base, [*done, ("payout", 2)])


@pytest.fixture
def ethereum(database: str, anvil: Callable[..., Anvil]) -> Iterator[RecoveryWorld]:
    made = RecoveryWorld(database, anvil, QUORUM_USD="1")
    yield from made.opened(providers=3)


def test_our_own_transfer_that_the_database_lost_is_no_payment_by_a_contract(ethereum: RecoveryWorld) -> None:
    world = ethereum
    world.pay_out("first", world.recipient())
    mine = world.coin_invoice(ETHER // 10)
    backup = world.copy()
    intent = transfer(
        sign.hot_wallet(world.network), mine.address.lower(), ETHER // 10, CATALOGUE.pairs["ETH", "ethereum"]
    )
    sign.start(context.context(), world.network, purpose="filler", intent=intent)
    world.watch()
    world.mine(FAR)
    world.restore(backup)
    registry._reader.cache_clear()
    hide(world, **{"from": OTHER, "to": OTHER})
    world.catch_up()
    world.watch()
    for _ in range(2):
        world.probe()
        execute("UPDATE deposit_quorums SET next_attempt_at = app_now()")
        world.witness()
        world.poll()
    assert world.deposits() == []
    assert world.unexplained("txid") != []

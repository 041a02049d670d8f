"""Finds plain transfers of coin in blocks of which only logs were read, by their slots. On anvil."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from actors.recovery import missing
from actors.treasury import sweep
from chains import registry
from devstack.evm.anvil import Anvil
from models.db.base import execute, rows
from models.spends import slots
from tests.actors.recovery.world import RecoveryWorld
from tests.peers.json_rpc_node import Refusal

# Other databases are copied from it.
pytestmark = pytest.mark.fresh_database

ETHER = 10**18
# Deep enough for ranges to be read without their blocks.
FAR = 400
PRUNED = Refusal(-32000, "missing trie node")


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil], monkeypatch: pytest.MonkeyPatch) -> Iterator[RecoveryWorld]:
    """Base, whose coin is not offered: no buyer pays with it, but gas for sweeps leaves in it."""
    monkeypatch.setattr(missing, "REST_S", 0.0)
    missing._rests_until.clear()
    made = RecoveryWorld(database, anvil, network="base")
    for opened in made.opened(gas_wei=0):
        assert opened is made
        made.node.ask("anvil_setBalance", made.hot, hex(5 * ETHER))
        made.reconcile()
        made.pay_out("first", made.recipient())
        made.paid_invoice()
        yield made


def lose(world: RecoveryWorld, *steps: Callable[[], Any]) -> list[tuple[Any, ...]]:
    """Run work that the database forgets, far below the head; return the spends as they were."""
    backup = world.copy()
    for step in steps:
        step()
        world.advance()
        world.watch()
    done = world.spends("purpose", "slot")
    world.mine(FAR)
    world.restore(backup)
    # A new process begins with short ranges.
    registry._reader.cache_clear()
    return done


def forgetful(world: RecoveryWorld) -> Callable[[Any, list[Any]], Any]:
    """A node that keeps only the state of the newest block."""
    head = hex(world.node.height())
    return lambda truth, params: truth if params[1] in {"latest", "pending", head} else PRUNED


def heal(world: RecoveryWorld) -> None:
    """Let the scan find missing departures and the signer adopt them, and catch up with them."""
    for _ in range(3):
        world.poll()
        world.sign()


def is_whole(world: RecoveryWorld, done: list[tuple[Any, ...]]) -> bool:
    return world.stopped() == "" and sorted(world.spends("purpose", "slot")) == sorted(done)


def test_a_missing_gas_transfer_is_found_and_adopted(world: RecoveryWorld) -> None:
    done = lose(world, world.keep)
    assert [purpose for purpose, _ in done] == ["payout", "gas"]
    world.catch_up()
    assert world.unexplained() == [], "the range was read without its blocks"
    order = world.order("second", to := world.recipient())
    world.sign()
    assert "next slot" in world.stopped()
    heal(world)
    assert is_whole(world, [*done, ("payout", 2)])
    world.settle_payouts()
    assert (world.reread(order).status, world.arrived(to)) == ("confirmed", 10)
    world.bury()
    world.assert_agreed(3)


def test_a_gap_below_a_departure_found_by_its_log_is_found_too(world: RecoveryWorld) -> None:
    to = world.recipient()
    done = lose(world, world.keep, lambda: (world.order("second", to), world.sign()))
    assert sorted(done) == [("gas", 1), ("payout", 0), ("payout", 2)]
    world.providers[0].lies["eth_getTransactionCount"] = forgetful(world)
    world.catch_up()
    assert world.unexplained("slot") == [(2,)]
    order = world.order("second", to)
    world.sign(2)
    assert world.unexplained("slot", "status") == [(2, "adopted")]
    assert world.stopped() != "", "slot 1 is not explained"
    world.providers[0].lies.clear()
    heal(world)
    assert is_whole(world, done)
    world.settle_payouts()
    assert (world.reread(order).status, world.arrived(to)) == ("confirmed", 10)


def test_without_old_state_at_the_nodes_the_network_stays_stopped(world: RecoveryWorld) -> None:
    done = lose(world, world.keep)
    world.catch_up()
    order = world.order("second", world.recipient())
    world.providers[0].lies["eth_getTransactionCount"] = forgetful(world)
    for _ in range(3):
        world.sign()
        world.poll()
    assert (world.reread(order).status, world.unexplained(), world.count("spends")) == ("approved", [], 1)
    assert "next slot" in world.stopped()
    world.providers[0].lies.clear()
    heal(world)
    assert is_whole(world, [*done, ("payout", 2)])


def test_missing_departures_are_looked_for_rarely(world: RecoveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "REST_S", 60.0)
    lose(world, world.keep)
    world.catch_up()
    world.order("second", world.recipient())
    world.sign()
    asked = []

    def pruned(_truth: Any, params: list[Any]) -> Any:
        asked.append(params)
        return PRUNED

    world.providers[0].lies["eth_getTransactionCount"] = pruned
    world.poll(4)
    assert len(asked) == 1
    missing._rests_until.clear()
    world.providers[0].lies.clear()
    heal(world)


def test_a_step_makes_a_bounded_number_of_queries(world: RecoveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "SOUGHT_PER_STEP", 1)
    monkeypatch.setattr(sweep, "STARTED_PER_STEP", 1)
    world.paid_invoice()
    done = lose(world, *[world.keep] * 3)
    assert [purpose for purpose, _ in done] == ["payout", "gas", "sweep", "gas"]
    world.providers[0].lies["eth_getTransactionCount"] = forgetful(world)
    world.catch_up()
    world.order("third", world.recipient())
    world.providers[0].lies.clear()
    query = f"SELECT slot FROM unexplained_departures WHERE sender = '{world.hot}' ORDER BY slot"
    world.poll()
    assert rows(query) == [(1,)]
    world.poll(2)
    assert rows(query) == [(1,), (2,)]
    heal(world)
    assert is_whole(world, [*done, ("payout", 3)])


def test_slots_used_before_our_first_row_are_not_gaps(world: RecoveryWorld) -> None:
    code = world.network.code
    assert slots.unexplained(code, world.hot, 1, limit=9) == []
    assert slots.missing(code, limit=9) == []
    [(state,)] = rows("SELECT state FROM spends")
    execute("UPDATE spends SET slot = 7, state = 'dead'")
    try:
        assert slots.unexplained(code, world.hot, 11, limit=2) == [8, 9]
        execute("UPDATE spends SET state = %s", (state,))
        assert slots.unexplained(code, world.hot, 8, limit=9) == []
        execute("UPDATE spend_accounts SET next_slot = 11 WHERE sender = %s", (world.hot,))
        assert slots.missing(code, limit=1) == [8]
        assert slots.unexplained(code, world.hot, 11, limit=2) == [8, 9]
        assert slots.unexplained(code, "0xnobody", 11, limit=9) == []
        [(height,)] = rows("SELECT mined_height FROM spends")
        assert slots.between(code, world.hot, 9) == (height, None)
        assert slots.between(code, world.hot, 3) == (None, height)
    finally:
        execute("UPDATE spends SET slot = 0, state = %s", (state,))
        execute("UPDATE spend_accounts SET next_slot = 1 WHERE sender = %s", (world.hot,))

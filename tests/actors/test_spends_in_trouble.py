"""Spends that are lost, stuck or cannot be paid for: each ends, or waits for what it needs, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import structlog

from models import spend_tracking, spends
from models.base import rows
from models.ledger import GAS, GATEWAY, Account
from tests.actors.spend_world import RICH_WEI, SpendWorld
from tests.actors.test_spending import start
from tests.models.builders import net_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch)
    yield made
    made.close()


# Slots that are lost ------------------------------------------------------------------------------------------------


def test_a_confirmed_spend_whose_slot_another_uses_settles_with_an_alarm(world: SpendWorld) -> None:
    """A reorg that should not be took it, and somebody else with the key was first after it."""
    order = world.order()
    world.step()
    world.mine()
    world.step()
    world.confirm()
    assert world.payout(order).status == "confirmed"

    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.stranger(world.hot)
    world.mine(world.network.maturity)
    with structlog.testing.capture_logs() as logs:
        world.step(3)
    assert [log["log_level"] for log in logs if "was used by another" in log["event"]] == ["critical"]
    assert rows("SELECT state, settled_at IS NOT NULL, mined_txid, booked_fee_units, problem FROM spends") == [
        ("confirmed", True, None, 0, spend_tracking.LOST)
    ]
    # It is asked for no more, and the gas that it took at first is back in the books: the stranger's is not ours.
    world.step()
    assert spends.to_watch("ethereum", limit=9) == []
    assert net_of(Account(GATEWAY, GAS, "ETH")) == 0
    assert world.chain.funds[world.hot, None] < RICH_WEI
    assert world.payout(order).status == "confirmed"


def test_a_lost_slot_settles_only_what_is_in_no_block(world: SpendWorld) -> None:
    """One look alone gives up nothing that was seen in a block."""
    spend_id = start(world)
    world.mine()
    world.step()
    world.confirm()
    world.reorg(world.network.confirmations, is_lost=True)
    world.chain.stranger(world.hot)
    world.mine(world.network.maturity)
    world.step()
    found = spends.find(spend_id)
    assert found is not None
    assert (found.state, found.settled_at, found.mined_txid) == ("confirmed", None, None)

"""A payout worth QUORUM_USD or more needs two providers, if there are two, and stays sent until then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from actors.signer import follow_up
from chains.spending import Fate, FateKind
from models.db.base import execute
from models.spends import rows as spends
from tests.actors.scan.test_deep_reorgs import failed, paid_after_all
from tests.actors.signer.test_sign import start
from tests.actors.signer.world import SpendWorld
from tests.models.builders import USDT


@pytest.fixture
def world(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpendWorld]:
    made = SpendWorld(database, monkeypatch, QUORUM_USD="10")
    yield made
    made.close()


class Lone:
    """Makes every inclusion one that only a single provider shows, while it is on."""

    def __init__(self, world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on = True
        self._fate = world.chain.fate
        monkeypatch.setattr(world.chain, "fate", self._lone_fate)

    def _lone_fate(self, *args: Any, **more: Any) -> Fate:
        fate = self._fate(*args, **more)
        return replace(fate, is_witnessed=not self.is_on) if fate.kind is FateKind.INCLUDED else fate


@pytest.fixture
def lone(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> Lone:
    return Lone(world, monkeypatch)


def paid_out(world: SpendWorld) -> None:
    """Include everything, and bury it to the confirmations of payouts."""
    world.step()
    world.confirm_sent()


def test_a_large_payout_confirmed_by_one_provider_stays_sent(world: SpendWorld, lone: Lone) -> None:
    large, small = world.order(units=10 * USDT), world.order(units=9 * USDT)
    paid_out(world)
    world.mine(world.network.maturity)
    world.step(3)

    assert [world.payout(each).status for each in (large, small)] == ["sent", "confirmed"]
    assert world.reasons() == [follow_up.ALONE, ""]
    assert world.held_units(large) == 11 * USDT

    lone.is_on = False
    world.step()

    assert (world.payout(large).status, world.reasons(), world.held_units(large)) == ("confirmed", ["", ""], 0)
    assert world.paid(large) == 1


def test_a_payout_without_a_price_counts_as_large(world: SpendWorld, lone: Lone) -> None:
    order = world.order(units=USDT)
    world.step()
    execute("UPDATE rates SET quoted_at = app_now() - interval '1 day'")
    world.ctx.market.forget()
    world.confirm_sent()
    assert (world.payout(order).status, lone.is_on) == ("sent", True)

    lone.is_on = False
    world.step()
    assert world.payout(order).status == "confirmed"


def test_moves_between_our_own_addresses_need_no_second_provider(world: SpendWorld, lone: Lone) -> None:
    spend_id = start(world, units=10 * 10**6)
    paid_out(world)
    spend = spends.find(spend_id)
    assert spend is not None
    assert (spend.state, lone.is_on) == ("confirmed", True)


def test_a_failed_payout_that_one_provider_shows_as_paid_waits_without_an_event(world: SpendWorld, lone: Lone) -> None:
    """For its merchant it has ended."""
    world.mine(3)
    lone.is_on = False
    order = failed(world)
    before = world.available(order)
    lone.is_on = True
    paid_after_all(world, order)
    assert (world.available(order), world.reasons()) == (before, [""])

    lone.is_on = False
    world.step()
    assert world.available(order) == before - 10 * USDT

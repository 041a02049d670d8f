"""Numbers that end: one that no block took is claimed again by the next spend, and none outlives a stop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import pytest

from actors.signer.intents import case_of
from chains.spending import Counter
from core.catalogue.families import TRAITS
from models.db.base import app_now, execute, rows, transaction
from models.payouts.rows import PayoutRow
from models.spends import rows as spends
from tests.actors.signer.moments import once
from tests.actors.signer.world import SpendWorld
from tests.peers.paper_spender import PaperSpender

WINDOW_S: Final = 60
LIFE: Final = timedelta(seconds=30)


@pytest.fixture
def spender(paper: Callable[..., PaperSpender]) -> PaperSpender:
    made = paper("counter", in_flight_max=1, window_s=WINDOW_S)
    made.life = LIFE
    return made


def outlive(world: SpendWorld, spender: PaperSpender) -> None:
    """Let all ends be past, by our clock, by the chain and by its nodes."""
    world.pass_time(WINDOW_S)
    world.mine(world.network.maturity)
    spender.ended_to = app_now()


def listed() -> list[tuple[int, str, str]]:
    return rows("SELECT slot, purpose, state FROM spends ORDER BY id")


def test_an_ended_number_is_claimed_again_without_a_filler(world: SpendWorld, spender: PaperSpender) -> None:
    order = world.order()
    world.step()
    first = world.spend(order)
    outlive(world, spender)
    world.step(2)
    assert listed() == [(0, "payout", "dead"), (0, "payout", "sent")]
    assert (world.spend(order).id != first.id, world.held_units(order) > 0) == (True, True)

    spender.include(world.spend(order).txid)
    world.scan()
    world.step()
    world.confirm()
    assert world.payout(order).status == "confirmed"


def test_the_end_is_kept_with_the_attempt_and_asked_about(world: SpendWorld, spender: PaperSpender) -> None:
    assert spender.life == LIFE
    order = world.order()
    world.step()
    spend = world.spend(order)
    (first,) = spends.attempts_of(spend.id)
    assert first.expires_at is not None
    later = first.but(number=1, txid="0xlater", expires_at=first.expires_at + LIFE)
    endless = first.but(number=2, txid="0xendless", expires_at=None)

    def asked(*attempts: spends.AttemptRow) -> object:
        return case_of(world.network, spend, attempts).claim

    assert asked(first) == Counter(at_least=0, ends_at=first.expires_at)
    assert asked(later, first) == asked(first, later) == Counter(at_least=0, ends_at=later.expires_at)
    assert asked(endless, first) == Counter(at_least=0)


def test_bytes_are_sent_again_until_they_end(world: SpendWorld, spender: PaperSpender) -> None:
    world.order()
    world.step()
    world.pass_time(10)
    world.step()
    assert len(spender.sent) == 2
    world.pass_time(WINDOW_S)
    world.mine()
    world.step()
    assert len(spender.sent) == 2


@pytest.mark.parametrize("life", [None, timedelta(seconds=WINDOW_S + 30)])
def test_a_number_that_could_outlive_a_stop_is_not_signed(
    world: SpendWorld, spender: PaperSpender, life: timedelta | None
) -> None:
    spender.life = life
    order = world.order()
    world.step()
    assert (listed(), world.payout(order).status, spender.sent) == ([], "approved", [])


def test_a_number_given_back_after_the_quote_is_quoted_again(world: SpendWorld, spender: PaperSpender) -> None:
    order = given_back_soon(world, spender)
    once("spending.quoted", lambda: execute("UPDATE spend_accounts SET next_slot = 0"))
    world.step()
    assert (world.spend(order).slot, len(spender.drafted)) == (0, 2)


def test_a_number_taken_after_the_quote_is_quoted_again(world: SpendWorld, spender: PaperSpender) -> None:
    order = given_back_soon(world, spender)
    once("spending.quoted", lambda: execute("UPDATE spend_accounts SET next_slot = 7"))
    world.step()
    assert (world.spend(order).slot, len(spender.drafted)) == (7, 2)


def given_back_soon(world: SpendWorld, spender: PaperSpender) -> PayoutRow:
    """Return an order, of a wallet whose next number is 1."""
    with transaction():
        spends.raise_slot(world.network.code, world.hot, 1)
    assert spender.life is not None
    return world.order()


def test_a_message_of_ton_ends_before_a_stop_is_lifted() -> None:
    """Its wallet takes a message for at most 90 seconds."""
    assert (TRAITS["ton"].counters_end, TRAITS["ton"].window_s >= 90) == (True, True)
    assert not any(TRAITS[family].counters_end for family in TRAITS if family != "ton")

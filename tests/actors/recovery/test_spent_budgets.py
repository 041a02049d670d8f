"""A step that may ask no more blames no provider, and loses nothing that it knows."""

from __future__ import annotations

import contextlib
from typing import Any
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from actors.recovery import missing, resume, unread
from actors.scan import witnesses
from actors.signer import follow_up, mempools, refusals
from actors.treasury import reconcile
from chains.base import Agreement, Block, ChainError, ProviderError
from chains.net.budget import BudgetSpentError
from chains.spending import SpendRefusedError
from cli.output import CommandError
from cli.session import failures_named
from models.db.base import execute, rows, transaction
from models.deposits import cursors
from models.spends import unread_departures
from tests.actors.recovery.test_ticks import caught_up
from tests.actors.signer.world import SpendWorld
from tests.models.spends.departures import SENDER

SPENT = BudgetSpentError("the step has asked enough\n")


def events(logs: list[Any]) -> list[str]:
    return [log["event"] for log in logs if log["log_level"] in {"warning", "error"}]


def test_a_spent_budget_is_an_error_of_the_chain_and_of_no_provider() -> None:
    assert isinstance(SPENT, ChainError)
    assert not isinstance(SPENT, ProviderError)
    assert str(SPENT) == "the step has asked enough\\n"


def test_a_spend_whose_fate_could_not_be_asked_for_is_looked_at_later(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.order()
    world.step()
    execute("UPDATE spends SET check_at = app_now()")
    monkeypatch.setattr(world.chain, "fate", Mock(side_effect=SPENT))
    with capture_logs() as logs:
        follow_up.advance(world.ctx, world.network)
    assert events(logs) == []
    assert rows("SELECT state, check_at > app_now() FROM spends") == [("sent", True)]


def test_bytes_that_a_step_may_have_sent_count_as_sent(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.order()
    monkeypatch.setattr(world.chain, "send", Mock(side_effect=SPENT))
    world.step()
    assert rows("SELECT sent_at IS NOT NULL, last_error LIKE 'BudgetSpentError%%' FROM spend_attempts") == [
        (True, True)
    ]


def test_a_payout_is_signed_though_pools_could_not_be_compared(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mempools, "_check_slots", Mock(side_effect=SPENT))
    order = world.order()
    world.step()
    assert world.payout(order).status == "sent"


def test_whom_a_token_refuses_is_asked_again_by_the_next_step(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "is_own_refusal", Mock(side_effect=SPENT))
    pair = world.ctx.catalogue.pairs["USDT", world.network.code]
    assert refusals.traced(world.ctx, world.network, pair, SpendRefusedError("refused")) is SPENT


def test_a_tick_ends_with_its_step(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "_lift", Mock(side_effect=SPENT))
    stopped = caught_up(world)
    with capture_logs() as logs:
        resume.resume_signing(stopped)
    assert events(logs) == ["network_tick.budget_spent"]


def test_a_tick_whose_providers_fail_names_them(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "_lift", Mock(side_effect=ProviderError("away")))
    stopped = caught_up(world)
    with capture_logs() as logs:
        resume.resume_signing(stopped)
    assert events(logs) == ["network_tick.provider_failed"]


def test_a_search_for_a_departure_rests_and_blames_no_node(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "_rests_until", {})
    caught_up(world)
    chain = Mock()
    chain.used_counters.side_effect = SPENT
    with capture_logs() as logs:
        assert [missing.seek(world.ctx, world.network, chain) for _ in range(2)] == [0, 0]
    assert (events(logs), chain.used_counters.call_count) == ([], 1)


def test_a_departure_is_read_by_the_next_step(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "_rests_until", {})
    with transaction():
        unread_departures.note(world.network.code, "window", {"0xlost": SENDER}, height=1, block_hash="0x1")
    (claimed,) = unread_departures.waiting(world.network.code, limit=9)
    chain = Mock(providers=1)
    chain.block.return_value = Mock(spec=Block, hash=claimed.block_hash)
    chain.agreement.return_value = Agreement(same=1, other=0)
    chain.departure.side_effect = SPENT
    with capture_logs() as logs, pytest.raises(BudgetSpentError):
        unread.read(world.ctx, world.network, chain)
    assert (events(logs), unread._rests_until) == ([], {})


def test_a_departure_is_read_in_the_scanned_block_whatever_a_provider_shows_there(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "_rests_until", {})
    cursor = cursors.read(world.network.code)
    assert cursor is not None
    with transaction():
        unread_departures.note(
            world.network.code, "window", {"0xlost": SENDER}, height=cursor.height, block_hash=cursor.hash
        )
    chain = Mock(providers=2)
    chain.departure.return_value = None
    unread.read(world.ctx, world.network, chain)
    assert (chain.departure.call_args.args[1].hash, chain.block.call_count) == (cursor.hash, 0)


def test_a_payment_that_could_not_be_read_again_waits(world: SpendWorld) -> None:
    chain = Mock()
    chain.reread.side_effect = SPENT
    asked = Mock(block_height=1)
    assert witnesses._corrected(world.ctx, world.network, chain, asked) == set()


def test_a_surplus_that_was_not_confirmed_is_not_adopted(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "ask", Mock(side_effect=SPENT))
    chain = Mock(budget=lambda **_: contextlib.nullcontext())
    with capture_logs() as logs:
        is_adopted = reconcile._adopt(world.ctx, world.network, chain, Mock(), Mock(witnesses=1), Mock(), Mock())
    assert (is_adopted, events(logs)) == (False, ["reconciliation.surplus_unconfirmed"])


def test_a_command_that_may_ask_no_more_names_its_network() -> None:
    with pytest.raises(CommandError, match="ethereum"), failures_named("ethereum"):
        raise SPENT

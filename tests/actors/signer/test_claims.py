"""Claims other than counters, and several payouts in one spend: committed once, and drafted again if impossible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from actors.signer import broadcast, limits, sign
from actors.signer.limits import LimitReachedError
from chains.base import ForeignKeyError
from chains.spending import Coins, Intent, Offer, UnderfundedError
from models.db.base import execute, rows, transaction
from models.payouts import freezes
from models.payouts.rows import PayoutRow
from models.spends import coins, signing_stops
from models.spends import tracking as spend_tracking
from models.spends.coins import Spending
from tests.actors.signer.moments import once
from tests.actors.signer.world import TOKENS, SpendWorld, coin
from tests.models.builders import CATALOGUE, USDT
from tests.models.spends.departures import note_taker
from tests.peers.paper_chain import transfer
from tests.peers.paper_spender import PaperSpender


def came(order: PayoutRow, seconds_ago: int) -> None:
    """Let a payout be due and approved for a number of seconds."""
    execute(
        "UPDATE payouts SET due_at = app_now() - %(age)s, updated_at = app_now() - %(age)s WHERE id = %(payout)s",
        {"age": timedelta(seconds=seconds_ago), "payout": order.id},
    )


def holders() -> list[tuple[str, bool]]:
    return rows("SELECT txid, held_by IS NOT NULL FROM coins ORDER BY txid")


def payment(world: SpendWorld, ordinal: int | None = None) -> Intent:
    wallet = sign.hot_wallet(world.network) if ordinal is None else sign.deposit_wallet(world.network, ordinal)
    return transfer(wallet, "0x" + "a1" * 20, TOKENS, CATALOGUE.pairs["USDT", "ethereum"])


# Several outputs ----------------------------------------------------------------------------------------------------


def test_payouts_of_one_coin_share_a_spend_and_each_ends(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", outputs_max=3)
    orders = [world.order() for _ in range(3)]
    world.step()

    assert [len(intent.outputs) for intent in spender.drafted] == [3]
    assert rows("SELECT place, payout_id FROM spend_outputs ORDER BY place") == [
        (place, order.id) for place, order in enumerate(orders)
    ]
    assert {world.payout(order).status for order in orders} == {"sent"}
    assert rows("SELECT count(*), sum(usd_cents) FROM signer.counted") == [(3, 3_000)]

    spender.include(world.spend(orders[0]).txid)
    world.scan()
    world.step()
    world.confirm()
    assert {world.payout(order).status for order in orders} == {"confirmed"}


def test_ripe_outputs_are_tried_and_a_look_without_any_locks_nothing(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    spender, tried = paper("counter", outputs_max=3), list[bool]()
    orders = [world.order() for _ in range(3)]
    world.step()
    ripen = spend_tracking.ripen

    def counted(*asked: Any) -> Any:
        after = ripen(*asked)
        tried.append(after is not None)
        return after

    monkeypatch.setattr(spend_tracking, "ripen", counted)
    spender.include(world.spend(orders[0]).txid)
    world.scan()
    world.step(3)
    assert tried == [False], "an output newly in a block is tried once"

    world.confirm()
    assert tried == [False, True, True, True]
    world.step(3)
    assert tried == [False, True, True, True], "a paid output is watched, and settled at its depth"
    world.settle()
    assert tried == [False, True, True, True, True, False]
    assert {world.payout(order).status for order in orders} == {"confirmed"}


def test_a_spend_has_a_bounded_number_of_payouts_in_one_coin(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("counter", outputs_max=2)
    shop = world.shop()
    world.fund(shop, 10 * USDT, "ETH")
    for currency in ("USDT", "ETH", "USDT", "USDT"):
        world.order(shop, currency=currency, units=USDT)
    world.step()

    pairs = [(len(intent.outputs), intent.pair.currency) for intent in spender.drafted if intent.pair is not None]
    assert pairs == [(2, "USDT"), (1, "USDT"), (1, "ETH")]


@pytest.mark.parametrize(
    ("ages", "left"),
    [
        ([0], []),
        ([60], []),
        ([120], [1]),
        # The others are waited for while more keep coming, but not for ever.
        ([500, 300, 60], []),
        ([500, 300, 120], [3]),
        ([600, 0], [2]),
        # A full spend waits for no more; the payouts beyond it wait.
        ([3, 2, 1, 0], [4]),
        ([4, 3, 2, 1, 0], [4]),
        ([130, 130, 130, 130, 0], [4]),
    ],
)
def test_payouts_wait_for_others_to_share_a_spend(
    world: SpendWorld, paper: Callable[..., PaperSpender], ages: list[int], left: list[int]
) -> None:
    spender = paper("counter", outputs_max=4, gather_s=120)
    for age_s in ages:
        came(world.order(), age_s)
    world.step()
    assert [len(intent.outputs) for intent in spender.drafted] == left


@pytest.mark.parametrize("column", ["due_at", "updated_at"])
def test_a_payouts_wait_begins_at_its_approval_or_the_end_of_a_delay(
    world: SpendWorld, paper: Callable[..., PaperSpender], column: str
) -> None:
    spender = paper("counter", outputs_max=4, gather_s=120)
    order = world.order()
    came(order, 10_000)
    execute(f"UPDATE payouts SET {column} = app_now() - interval '1 second'")
    world.step()
    assert spender.drafted == []


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_of_three_payouts_frozen_after_the_draft_stays_and_the_others_are_sent(
    world: SpendWorld, paper: Callable[..., PaperSpender], place: int
) -> None:
    spender = paper("counter", outputs_max=3)
    orders = [world.order() for _ in range(3)]
    frozen = orders.pop(place)
    once(
        "spending.quoted",
        lambda: freezes.freeze("merchant", str(frozen.merchant_id), reason="test", frozen_by="test"),
    )
    world.step()

    assert [len(intent.outputs) for intent in spender.drafted] == [3, 2]
    assert (world.payout(frozen).status, world.payout(frozen).wait_reason) == ("approved", "frozen")
    assert rows("SELECT payout_id FROM spend_outputs ORDER BY place") == [(order.id,) for order in orders]
    assert rows("SELECT place, merchant_id FROM signer.counted ORDER BY place") == [
        (number, order.merchant_id) for number, order in enumerate(orders)
    ]
    assert rows("SELECT slot FROM spends") == [(0,)], "the rolled-back draft took no slot"

    freezes.unfreeze("merchant", str(frozen.merchant_id))
    world.due_now()
    world.step()
    assert world.payout(frozen).status == "sent"


def test_a_payout_refused_by_the_chain_is_found_and_the_others_are_sent(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("counter", outputs_max=4)
    orders = [world.order() for _ in range(4)]
    spender.refused.add(orders[2].address)
    world.step()

    assert [world.payout(order).status for order in orders] == ["sent", "sent", "approved", "sent"]
    assert [len(intent.outputs) for intent in spender.drafted] == [4, 2, 2, 1, 1]


def test_a_sender_that_others_may_sign_for_freezes_the_network(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    spender = paper("window")
    order = world.order()
    monkeypatch.setattr(spender, "draft", Mock(side_effect=ForeignKeyError("others may sign")))
    world.step()

    assert freezes.is_network_frozen("ethereum")
    assert [(each.name, each.reason, each.frozen_by) for each in freezes.listing()] == [
        ("ethereum", "others may sign", freezes.SIGNER)
    ]
    assert (world.payout(order).status, world.count("spends"), spender.sent) == ("approved", 0, [])
    monkeypatch.undo()
    world.pass_time(broadcast.PAUSE_ALARM_S + 1)
    paper("window")
    world.step()
    assert world.payout(order).status == "approved"


def test_a_limit_stops_only_the_payout_that_exceeds_it(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    paper("counter", outputs_max=3)
    orders = [world.order() for _ in range(3)]
    real = limits.allow

    def allow(*given: Any, merchant_id: UUID, **more: Any) -> None:
        if merchant_id == orders[1].merchant_id:
            raise LimitReachedError("a test")
        real(*given, merchant_id=merchant_id, **more)

    monkeypatch.setattr(limits, "allow", allow)
    world.step()

    assert [world.payout(order).status for order in orders] == ["sent", "approved", "sent"]
    payout = world.payout(orders[1])
    assert (payout.wait_reason, payout.waiting_for) == ("the signer's limit: a test", "limit")


def test_a_broken_payout_of_several_delays_no_other(
    world: SpendWorld, paper: Callable[..., PaperSpender], monkeypatch: pytest.MonkeyPatch
) -> None:
    paper("counter", outputs_max=3)
    orders = [world.order() for _ in range(3)]
    real = broadcast._take

    def fail(ctx: object, network: object, wallet: object, ready: broadcast._Ready, *more: object) -> bool:
        if ready.payout_id == orders[1].id:
            raise ArithmeticError("broken")
        return real(ctx, network, wallet, ready, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(broadcast, "_take", fail)
    world.step()
    assert [world.payout(order).status for order in orders] == ["sent", "approved", "sent"]


def test_spends_in_flight_are_bounded_by_the_family(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("counter", in_flight_max=1)
    orders = [world.order() for _ in range(2)]
    world.step(2)
    assert [world.payout(order).status for order in orders] == ["sent", "approved"]

    spender.include(world.spend(orders[0]).txid)
    world.scan()
    world.step()
    assert world.payout(orders[1]).status == "sent"


# Coins --------------------------------------------------------------------------------------------------------------


def test_a_spend_holds_its_coins_exclusively(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    paper("coins")
    coin(world, "a", height=49)
    coin(world, "b", height=50)
    orders = [world.order() for _ in range(3)]
    world.step()

    assert [world.payout(order).status for order in orders] == ["sent", "sent", "approved"]
    assert holders() == [("a", True), ("b", True)]
    assert rows("SELECT slot FROM spends") == [(None,), (None,)]


def test_of_two_spends_for_one_coin_the_slower_is_drafted_again(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    """The other one is of another wallet, so that only the coin itself shows the conflict."""
    spender = paper("coins")
    coin(world, "a", height=49)
    coin(world, "b", height=50)
    others: list[object] = []
    once(
        "spending.quoted",
        lambda: others.append(sign.start(world.ctx, world.network, purpose="filler", intent=payment(world, ordinal=7))),
    )
    spend_id = sign.start(world.ctx, world.network, purpose="filler", intent=payment(world))

    assert rows("SELECT txid, held_by FROM coins ORDER BY txid") == [("a", others[0]), ("b", spend_id)]
    assert len(spender.drafted) == 3
    assert world.count("spends") == 2


def test_the_fate_of_a_spend_is_asked_for_with_its_held_coins(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("coins")
    coin(world, "a", height=49)
    order = world.order()
    world.step()
    spender.include(world.spend(order).txid)
    world.scan()
    world.step()
    world.confirm()
    assert world.payout(order).status == "confirmed"


# Windows ------------------------------------------------------------------------------------------------------------


def test_an_expired_window_is_signed_again_only_once_death_is_proved(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    spender = paper("window")
    order = world.order()
    world.step()
    (first,) = rows("SELECT id, slot FROM spends")
    assert first[1] is None
    with pytest.raises(LookupError):
        _ = world.spend(order).counter
    assert rows("SELECT expires_height, expires_at FROM spend_attempts") == [(106, None)]

    # Long past its end by any clock, but no scan has shown that it is in no block.
    world.mine(50)
    world.pass_time(3_600)
    sent = len(spender.sent)
    world.step(3)
    assert rows("SELECT id, state FROM spends") == [(first[0], "sent")]
    assert len(spender.sent) == sent, "the scanned blocks are past its end"

    spender.expired_to = 106
    with capture_logs() as logs:
        world.step()
    assert [log["event"] for log in logs if str(log["event"]).startswith("spend.")] == ["spend.expired"]
    assert rows("SELECT state FROM spends WHERE id = %s", (first[0],)) == [("dead",)]

    world.due_now()
    world.step()
    assert rows("SELECT state FROM spends WHERE id <> %s", (first[0],)) == [("sent",)]
    assert (world.payout(order).status, len(set(spender.sent))) == ("sent", 2)
    spender.include(world.spend(order).txid)
    world.scan()
    world.step()
    world.confirm()
    assert world.payout(order).status == "confirmed"


def test_a_spend_without_a_higher_offer_is_sent_as_it_is(world: SpendWorld, paper: Callable[..., PaperSpender]) -> None:
    spender = paper("window")
    world.order()
    world.step()
    for _ in range(3):
        world.pass_time(100)
        world.step()
    assert world.count("spend_attempts") == 1
    assert len(spender.sent) > 2


def stuck_on_coins(world: SpendWorld, spender: PaperSpender, offer: Callable[..., object]) -> list[Any]:
    """Make a payout from coins stuck and ask for its higher offer; return the log lines."""
    spender.dearer = offer  # type: ignore[method-assign]
    coin(world, "a", height=49)
    world.order()
    world.step()
    world.pass_time(100)
    with capture_logs() as logs:
        world.step()
    return logs


def test_a_spend_from_coins_without_funds_for_a_higher_offer_waits_and_gets_no_gas(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    def short(*_: object, **__: object) -> None:
        raise UnderfundedError("short", offer=Offer(ceiling_units=9, terms={}), missing_units=7)

    logs = stuck_on_coins(world, paper("coins"), short)

    assert [log["missing_units"] for log in logs if log["event"] == "spend.stuck_without_gas"] == [7]
    assert rows("SELECT purpose, attempts FROM spends") == [("payout", 1)]


def test_a_higher_offer_that_leaves_out_a_coin_is_not_signed(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    logs = stuck_on_coins(world, paper("coins"), lambda before, *_, **__: replace(before, claim=Coins(coins=())))

    assert [log["log_level"] for log in logs if "failed" in log["event"]] == ["error"], logs
    assert rows("SELECT purpose, attempts FROM spends") == [("payout", 1)]


def test_a_spend_that_lost_its_first_coin_gets_no_higher_offer(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    asked = Mock()
    paper("coins").dearer = asked  # type: ignore[method-assign]
    coin(world, "a", height=49)
    world.order()
    world.step()
    note_taker(world.network.code, "thief")
    with transaction():
        coins.note(world.network.code, [], [Spending("a", 0, "thief")], height=50, block_hash="0x0-50")
    world.pass_time(100)
    with capture_logs() as logs:
        world.step()

    assert [log for log in logs if log["log_level"] == "error"] == []
    asked.assert_not_called()
    assert rows("SELECT state, attempts FROM spends") == [("sent", 1)]


def test_without_counters_signing_continues_once_no_departure_is_unexplained(
    world: SpendWorld, paper: Callable[..., PaperSpender]
) -> None:
    paper("window")
    order = world.order()
    with transaction():
        signing_stops.stop(world.network.code, reason="a test", sender=world.hot)
    world.step()
    assert world.payout(order).status == "approved"
    world.mine()
    world.step()
    world.due_now()
    world.step()
    assert world.payout(order).status == "sent"

"""Concurrent workers that die or block each other do every item of a batch once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import count as count_up
from typing import Any
from uuid import UUID

import psycopg2
import pytest

from actors.batches import ticks
from core.ids import NIL
from models.batches import items as batch_items
from models.batches import rows as batches
from models.batches.items import LEASE_S, Leased, LeaseLostError
from models.db.base import StoreUnavailableError, execute, one, rows, transaction
from tests.actors.batches.world import (
    AGNOSTIC,
    PAYOUT,
    count,
    items_of,
    key_of,
    pass_by,
    run_all,
    status_of,
    statuses,
    take,
    work_on,
)
from tests.models.builders import merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.payouts.builders import FEE, USDT, rich_shop, trade

pytestmark = pytest.mark.usefixtures("gateway")


class KilledError(BaseException):
    """Ends a worker in the middle like SIGKILL: no code of it runs afterwards."""


@pytest.fixture
def shop() -> UUID:
    return rich_shop(1_000 * USDT)


def payouts_of(amount: int) -> list[dict[str, Any]]:
    return [PAYOUT | {"order_id": f"salary-{number}"} for number in range(amount)]


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException, *, at: Callable[[Leased], bool]) -> None:
    """Make a step raise on some items after it was done."""
    step = getattr(batch_items, name)

    def stumble(item: Leased, *args: Any, **options: Any) -> Any:
        done = step(item, *args, **options)
        if at(item):
            raise error
        return done

    monkeypatch.setattr(batch_items, name, stumble)


def run_and_die() -> None:
    with pytest.raises(KilledError):
        ticks.run_batches()


# Concurrent workers -------------------------------------------------------------------------------------------------


def test_concurrent_workers_do_every_item_once(shop: UUID) -> None:
    payments = take(shop, [AGNOSTIC] * 60)
    payouts = take(shop, payouts_of(40), kind="payout", principal=key_of(shop))

    assert at_once(4, lambda _: work_on()) == [None] * 4

    assert set(statuses(payments) + statuses(payouts)) == {"success"}
    # Without an order_id, a payment that was made twice would show as two.
    assert (count("invoices"), count("payouts")) == (60, 40)
    assert balances_of(shop)["payout_held"] == 40 * (USDT + FEE)
    assert {status_of(payments), status_of(payouts)} == {"completed"}


def test_final_counts_are_exact(shop: UUID) -> None:
    batch_id = take(shop, [AGNOSTIC, 5, AGNOSTIC, {}])

    at_once(3, lambda _: work_on())

    batch = batches.find(shop, batch_id)
    assert batch is not None
    assert (batch.count, batch.succeeded, batch.failed) == (4, 2, 2)
    assert batch.completed_at is not None


def test_a_tick_with_work_notifies_before_and_after_it(
    shop: UUID, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take(shop, [AGNOSTIC])
    rung.clear()
    collected: list[int] = []
    begin = batch_items.begin
    monkeypatch.setattr(batch_items, "begin", lambda item: collected.append(rung.count("run_batches")) or begin(item))

    ticks.run_batches()

    assert (collected, rung) == ([1], ["run_batches"] * 2)
    rung.clear()
    ticks.run_batches()
    assert rung == [], "a worker without work sends no notification"


def test_a_merchants_thousands_do_not_delay_anothers_item(shop: UUID) -> None:
    crowd = take(shop, [AGNOSTIC] * 500)
    others = [take(merchant(), [AGNOSTIC]) for _ in range(40)]

    # 41 merchants, 16 items a tick: three ticks are a round.
    for _ in range(3):
        ticks.run_batches()

    assert {status_of(batch_id) for batch_id in others} == {"completed"}
    assert 0 < statuses(crowd).count("success") <= 3 * ticks.ITEMS_A_RING


def test_a_merchants_later_batch_is_done_while_the_first_waits(shop: UUID) -> None:
    ordered = [take(shop, [AGNOSTIC, AGNOSTIC], on_error="stop") for _ in range(batches.BATCHES_A_TURN + 1)]
    execute("UPDATE batch_items SET due_at = app_now() + interval '1 hour' WHERE position = 0")
    later = take(shop, [AGNOSTIC])

    run_all()

    assert {place for batch_id in ordered for place in statuses(batch_id)} == {"pending"}
    assert statuses(later) == ["success"]


# Dying workers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["continue", "stop"])
def test_a_worker_that_dies_before_its_commit_leaves_no_effect(
    shop: UUID, on_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = take(shop, payouts_of(4), kind="payout", on_error=on_error, principal=key_of(shop))
    with monkeypatch.context() as patched:
        failing(patched, "succeed", KilledError(), at=lambda item: item.position == 2)
        run_and_die()

    assert statuses(batch_id) == ["success", "success", "pending", "pending"]
    assert balances_of(shop)["payout_held"] == 2 * (USDT + FEE)
    run_all()
    assert statuses(batch_id)[2] == "pending", "the lease has not ended"
    pass_by()
    run_all()

    assert statuses(batch_id) == ["success"] * 4
    assert balances_of(shop)["payout_held"] == 4 * (USDT + FEE)


def test_a_committed_item_is_not_done_again(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [AGNOSTIC] * 3)
    with monkeypatch.context() as patched:
        patched.setattr(ticks.Run, "do", kill_after_commit(ticks.Run.do))
        run_and_die()
    made = [item.result for item in items_of(batch_id)]
    assert statuses(batch_id) == ["success"] * 3
    assert status_of(batch_id) == "processing"

    pass_by()
    run_all()

    assert [item.result for item in items_of(batch_id)] == made
    assert (status_of(batch_id), count("invoices")) == ("completed", 3)


def kill_after_commit(do: Callable[..., None]) -> Callable[..., None]:
    def done(*args: Any) -> None:
        do(*args)
        raise KilledError

    return done


def test_a_created_payouts_notification_is_sent_even_if_the_worker_fails_later(
    shop: UUID, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take(shop, payouts_of(2), kind="payout", principal=key_of(shop))
    failing(monkeypatch, "begin", StoreUnavailableError("gone"), at=lambda item: item.position == 1)

    with pytest.raises(StoreUnavailableError):
        ticks.run_batches()

    assert "broadcast:ethereum" in rung


def test_an_item_that_kills_its_workers_is_given_up_alone(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [AGNOSTIC] * 4)
    failing(monkeypatch, "lock", KilledError(), at=lambda item: item.position == 1 and item.body != "")
    side_by_side = batch_items.lock_together
    monkeypatch.setattr(batch_items, "lock_together", kill_after_commit(side_by_side))

    for _ in range(ticks.BEGUN_MAX):
        run_and_die()
        pass_by()
    monkeypatch.undo()
    ticks.run_batches()

    assert statuses(batch_id) == ["success", "gateway.internal_error", "success", "success"]
    assert status_of(batch_id) == "completed"


def test_an_often_postponed_item_does_not_count_as_a_killer(shop: UUID) -> None:
    execute("DELETE FROM rates")
    ticks.context().market.forget()
    batch_id = take(shop, [AGNOSTIC])
    for pause_s in ticks.PAUSES_S[:-1]:
        run_all()
        pass_by(pause_s + 1)
    trade(USD="1", USDT="1", ETH="2000")
    ticks.context().market.forget()

    run_all()

    assert statuses(batch_id) == ["success"]


def test_the_next_round_completes_a_dead_workers_batch(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [AGNOSTIC])
    with monkeypatch.context() as patched:
        patched.setattr(batches, "complete", raising(KilledError()))
        run_and_die()
    assert (statuses(batch_id), status_of(batch_id)) == (["success"], "processing")

    ticks.run_batches()

    assert status_of(batch_id) == "completed"


def raising(error: BaseException) -> Callable[..., None]:
    def stumble(*_: Any) -> None:
        raise error

    return stumble


# Blocked workers ----------------------------------------------------------------------------------------------------


def test_a_worker_whose_lease_ended_cannot_end_its_item(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first worker plans its item, its lease ends, and a second worker does all items."""
    batch_id = take(shop, [AGNOSTIC, {}])
    begin = batch_items.begin
    seconds = count_up()

    def slow(item: Leased) -> int:
        begun = begin(item)
        if next(seconds) == 0:
            pass_by()
            ticks.run_batches()
        return begun

    monkeypatch.setattr(batch_items, "begin", slow)
    ticks.run_batches()

    assert statuses(batch_id) == ["success", "payment.bad_amount"]
    assert count("invoices") == 1


def test_an_item_whose_money_is_locked_waits_without_blocking_its_worker(
    shop: UUID, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = take(shop, payouts_of(8), kind="payout", principal=key_of(shop))
    other = take(merchant(), [AGNOSTIC])
    execute("SET lock_timeout = '50ms'")
    tried: list[int] = []
    begin = batch_items.begin
    monkeypatch.setattr(batch_items, "begin", lambda item: tried.append(item.position) or begin(item))
    with contextlib.closing(psycopg2.connect(database)) as elsewhere, elsewhere.cursor() as cursor:
        cursor.execute("SELECT 1 FROM balances FOR UPDATE")

        ticks.run_batches()

        assert (set(statuses(blocked)), statuses(other)) == ({"pending"}, ["success"])
        # The first item met the lock, the others were not tried; and the other merchant's was done.
        assert tried.count(0) == 2
        assert set(tried) == {0}
    pass_by()
    run_all()
    assert statuses(blocked) == ["success"] * 8


def test_in_order_an_item_waits_for_the_end_of_the_one_before(shop: UUID) -> None:
    take(shop, [AGNOSTIC] * 3, on_error="stop")
    with transaction():
        turn = batches.lease_turn(limit=16, after=NIL)
    assert [item.position for item in turn.items] == [0, 1, 2]
    for item in turn.items:
        batch_items.begin(item)

    with pytest.raises(LeaseLostError), transaction():
        batch_items.lock(turn.items[1])
    with transaction():
        assert batches.lease_turn(limit=16, after=NIL).items == ()
    pass_by(LEASE_S + 1)
    with transaction():
        again = batches.lease_turn(limit=16, after=NIL)
    assert [item.position for item in again.items] == [0, 1, 2]


def test_a_failure_does_not_overwrite_another_workers_result(shop: UUID) -> None:
    batch_id = take(shop, [AGNOSTIC])
    with transaction():
        (mine,) = batches.lease_turn(limit=1, after=NIL).items
    pass_by()
    run_all()

    with pytest.raises(LeaseLostError), transaction():
        batch_items.fail(mine, code="payment.bad_amount", message="no")

    assert statuses(batch_id) == ["success"]
    assert rows("SELECT error_code FROM batch_items") == [(None,)]
    assert one("SELECT 1 FROM batch_items WHERE lease IS NOT NULL") is None

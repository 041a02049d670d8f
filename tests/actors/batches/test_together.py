"""Creates a batch's payments together, with the results of single creation and fewer statements."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from actors.batches import ticks, together
from actors.context import Context
from actors.invoices import orders as invoice_orders
from actors.invoices.orders import Ready
from models.batches import items as batch_items
from models.batches.items import Leased
from models.db.base import StoreUnavailableError, execute
from tests.actors.batches.world import (
    AGNOSTIC,
    PAYMENT,
    configure,
    count,
    items_of,
    pass_by,
    run_all,
    statuses,
    take,
)
from tests.models.builders import merchant

pytestmark = pytest.mark.usefixtures("free_addresses")

BELOW_MINIMUM = PAYMENT | {"amount": "0.01"}


class KilledError(BaseException):
    """Ends a worker in the middle, like SIGKILL."""


@pytest.fixture
def shop() -> UUID:
    return merchant()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the positions of items that were done alone."""
    done: list[int] = []
    end = ticks.Run._end

    def note(run: ticks.Run, item: Leased) -> Any:
        done.append(item.position)
        return end(run, item)

    monkeypatch.setattr(ticks.Run, "_end", note)
    return done


def instead(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, happens: Callable[[], object]) -> None:
    """Run work once, right before a step."""
    step = getattr(owner, name)
    due = [happens]

    def first(*args: Any, **options: Any) -> Any:
        if due:
            due.pop()()
        return step(*args, **options)

    monkeypatch.setattr(owner, name, first)


def fail(error: BaseException) -> Callable[[], object]:
    def stumble() -> None:
        raise error

    return stumble


def test_new_payments_are_created_by_one_statement(shop: UUID, alone: list[int]) -> None:
    batch_id = take(shop, [PAYMENT | {"order_id": f"o-{number}"} for number in range(5)] + [AGNOSTIC] * 3)

    run_all()

    results = [item.result for item in items_of(batch_id)]
    assert (statuses(batch_id), alone) == (["success"] * 8, [])
    assert [result["order_id"] for result in results] == [f"o-{number}" for number in range(5)] + [""] * 3
    assert len({result["uuid"] for result in results}) == count("invoices") == 8
    assert len({result["address"] for result in results[:5]} - {""}) == 5
    assert count("calls") == 1, "only the batch's call: items have none"


def test_other_payments_are_done_alone_after_the_new_ones(shop: UUID, alone: list[int]) -> None:
    first = PAYMENT | {"order_id": "a"}
    batch_id = take(shop, [first, BELOW_MINIMUM, 5, AGNOSTIC, first, first | {"is_refresh": True}])

    run_all()

    assert statuses(batch_id) == [
        "success",
        "payment.below_minimum",
        "request.bad_field",
        "success",
        "success",
        "success",
    ]
    assert alone == [1, 2, 4, 5]
    results = [item.result for item in items_of(batch_id)]
    assert results[0]["uuid"] == results[4]["uuid"] == results[5]["uuid"]
    assert count("invoices") == 2


@pytest.mark.parametrize(
    ("items", "more"),
    [([AGNOSTIC] * 3, {"on_error": "stop"}), ([AGNOSTIC], {})],
    ids=["in order", "one"],
)
def test_ordered_and_single_items_are_done_alone(
    shop: UUID, alone: list[int], items: list[Any], more: dict[str, Any]
) -> None:
    batch_id = take(shop, items, **more)

    run_all()

    assert (statuses(batch_id), alone) == (["success"] * len(items), list(range(len(items))))


def test_items_that_fail_together_are_done_alone_and_return_their_addresses(
    shop: UUID, alone: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = take(shop, [PAYMENT] * 2)
    instead(monkeypatch, batch_items, "succeed_together", fail(RuntimeError("a bug")))
    given_back: list[int | None] = []
    give_back = invoice_orders.give_back

    def note(ctx: Context, ready: Ready) -> None:
        given_back.append(ready.invoice.address_ordinal)
        give_back(ctx, ready)

    monkeypatch.setattr(invoice_orders, "give_back", note)

    run_all()

    assert (statuses(batch_id), alone, count("invoices")) == (["success"] * 2, [0, 1], 2)
    assert len(given_back) == len(set(given_back) - {None}) == 2
    assert count(f"address_owners WHERE ordinal = ANY(ARRAY{given_back})") == 0


def test_terms_changed_meanwhile_are_read_again(shop: UUID, alone: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [AGNOSTIC] * 2)
    change = "UPDATE merchants SET own_fee_ppm = 0, terms_version = terms_version + 1"
    instead(monkeypatch, batch_items, "lock_together", lambda: execute(change))

    run_all()

    assert (statuses(batch_id), alone) == (["success"] * 2, [0, 1])
    assert count("invoices WHERE fee_ppm = 0") == 2


def test_an_item_taken_by_another_worker_is_not_done(
    shop: UUID, alone: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = take(shop, [AGNOSTIC] * 3)
    taken = "UPDATE batch_items SET lease = gen_random_uuid() WHERE position = 1"
    instead(monkeypatch, batch_items, "lock_together", lambda: execute(taken))

    ticks.run_batches()

    assert statuses(batch_id) == ["success", "pending", "success"]
    assert (count("invoices"), alone) == (2, [1])


def test_an_item_that_was_begun_before_is_done_alone(shop: UUID, alone: list[int]) -> None:
    take(shop, [AGNOSTIC] * 3)
    execute("UPDATE batch_items SET begun = 1 WHERE position = 1")

    run_all()

    assert (alone, count("invoices")) == ([1], 3)


@pytest.mark.parametrize("step", ["lock_together", "succeed_together"])
def test_a_worker_that_dies_in_between_leaves_no_effect(
    shop: UUID, alone: list[int], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    batch_id = take(shop, [PAYMENT] * 3)
    instead(monkeypatch, batch_items, step, fail(KilledError()))
    with pytest.raises(KilledError):
        ticks.run_batches()
    assert (statuses(batch_id), count("invoices"), count("calls")) == (["pending"] * 3, 0, 1)

    pass_by()
    run_all()

    assert (statuses(batch_id), alone, count("invoices")) == (["success"] * 3, [0, 1, 2], 3)


def test_a_lost_store_ends_the_tick(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    batch_id = take(shop, [AGNOSTIC] * 2)
    instead(monkeypatch, batch_items, "lock_together", fail(StoreUnavailableError("gone")))

    with pytest.raises(StoreUnavailableError):
        ticks.run_batches()

    assert statuses(batch_id) == ["pending"] * 2


def test_a_batch_leaves_addresses_for_single_payments(database: str, shop: UUID, alone: list[int]) -> None:
    configure(database, POOL_LOW="256", POOL_HIGH="5000")
    batch_id = take(shop, [PAYMENT, AGNOSTIC, AGNOSTIC])

    ticks.run_batches()

    assert (statuses(batch_id), alone) == (["pending", "success", "success"], [0])


def test_items_are_locked_in_the_transaction_of_their_effect() -> None:
    with pytest.raises(RuntimeError, match="transaction of their effect"):
        batch_items.lock_together([])


def test_a_thread_pauses_for_a_bounded_time_after_creating_together(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested: list[float] = []
    moments = iter((10.0, 10.1, 20.0, 29.0))
    monkeypatch.setattr(together, "time", SimpleNamespace(monotonic=lambda: next(moments), sleep=rested.append))
    take(shop, [AGNOSTIC] * (ticks.ITEMS_A_RING + 2))

    ticks.run_batches()
    ticks.run_batches()

    assert rested == [pytest.approx(0.4), together.REST_MAX_S]
    assert count("invoices") == ticks.ITEMS_A_RING + 2

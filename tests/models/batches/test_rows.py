"""Batches in the database: written in one step, leased in turns, each item ended once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg2.errors
import pytest

from core.errors import BatchTooManyOpen
from core.ids import NIL, uuid7
from models.batches import items as batch_items
from models.batches import rows as batches
from models.batches.items import LEASE_S, Leased, LeaseLostError
from models.batches.rows import LOOKED_AT_MAX, WALK_MAX, BatchRow
from models.db.base import column, execute, one, rows, transaction
from tests.models.builders import merchant
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")


def add(merchant_id: UUID | None = None, *, size: int = 3, **columns: Any) -> UUID:
    """Write a batch whose items are "0", "1", …"""
    values: dict[str, Any] = {
        "id": uuid7(),
        "merchant_id": merchant_id or merchant(),
        "kind": "payment",
        "on_error": "continue",
        "created_by": "pk_me",
        "count": size,
        "request_id": "r",
    }
    new = BatchRow(**values | columns)
    with transaction():
        batches.create(new, [str(number) for number in range(size)], [f"o{number}" for number in range(size)])
    return new.id


def lease(limit: int = 16, after: UUID = NIL) -> list[Leased]:
    with transaction():
        return list(batches.lease_turn(limit=limit, after=after).items)


def pass_by(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def end(item: Leased, code: str | None = None) -> None:
    with transaction():
        if code is None:
            batch_items.lock(item)
            batch_items.succeed(item, b'{"n":1}')
        else:
            batch_items.fail(item, code=code, message="no")


def places(items: list[Leased]) -> list[int]:
    return [item.position for item in items]


def test_a_batch_is_written_with_its_items_in_order() -> None:
    shop = merchant()
    batch_id = add(shop, size=5_000)

    batch = batches.find(shop, batch_id)

    assert batch is not None
    assert (batch.kind, batch.status, batch.count, batch.succeeded, batch.failed) == ("payment", "pending", 5_000, 0, 0)
    assert [item.position for item in batch_items.page(batch_id, limit=5_000, offset=0)] == list(range(5_000))
    assert batch_items.page(batch_id, limit=1, offset=4_999)[0].order_id == "o4999"


def test_another_merchants_batch_is_not_found() -> None:
    batch_id = add()

    assert batches.find(merchant(), batch_id) is None
    assert batches.find(merchant(), UUID(int=7)) is None


def test_a_lease_takes_the_first_free_items() -> None:
    batch_id = add(size=5)

    first, second, third = lease(2), lease(2), lease(2)

    assert [places(leased) for leased in (first, second, third)] == [[0, 1], [2, 3], [4]]
    assert lease() == []
    assert first[0].body == "0"
    of = first[0].of
    assert (of.id, of.kind, of.is_in_order, of.created_by, of.request_id) == (batch_id, "payment", False, "pk_me", "r")
    assert rows("SELECT status FROM batches") == [("processing",)]


def test_a_lease_takes_at_most_its_limit_with_any_plan() -> None:
    add(size=40)

    with transaction():
        for join in ("hashjoin", "mergejoin", "material", "memoize"):
            execute(f"SET LOCAL enable_{join} = off")
        items = batches.lease_turn(limit=5, after=NIL).items

    assert places(list(items)) == [0, 1, 2, 3, 4]


def test_batches_without_due_items_add_no_cost_to_a_turn() -> None:
    shop = merchant()
    for _ in range(LOOKED_AT_MAX):
        add(shop, size=1)
    execute("UPDATE batch_items SET due_at = app_now() + interval '1 minute'")
    behind, stranger = add(shop, size=1), add(size=1)

    assert [item.of.id for item in lease()] == [stranger]
    pass_by(61)

    assert behind not in [item.of.id for item in lease(LOOKED_AT_MAX)]


def test_a_batch_is_completed_after_its_worker_died_before_completing_it() -> None:
    batch_id = add(size=1)
    end(lease()[0])

    with transaction():
        turn = batches.lease_turn(limit=1, after=NIL)
    batches.complete(turn.batches)

    assert (turn.items, turn.handled) == ((), (batch_id,))
    assert one("SELECT status FROM batches") == ("completed",)


@pytest.mark.parametrize(("merchant_max", "gateway_max"), [(6, 100), (100, 9)])
def test_items_of_open_batches_are_capped_by_merchant_and_gateway(merchant_max: int, gateway_max: int) -> None:
    shop = merchant()
    add(shop, size=4)
    add(size=3)

    batches.check_open(shop, count=2, merchant_max=merchant_max, gateway_max=gateway_max)
    with pytest.raises(BatchTooManyOpen):
        batches.check_open(shop, count=3, merchant_max=merchant_max, gateway_max=gateway_max)
    execute(
        "UPDATE batches SET status = 'completed', completed_at = app_now(), succeeded = count, failed = 0"
        " WHERE merchant_id = %s",
        (shop,),
    )

    batches.check_open(shop, count=6, merchant_max=merchant_max, gateway_max=gateway_max)


def test_concurrent_workers_lease_different_items() -> None:
    add(size=40)

    outcomes = at_once(4, lambda _: places(lease(10)))

    assert sorted(place for places_ in outcomes if isinstance(places_, list) for place in places_) == list(range(40))


def test_an_item_is_free_when_its_lease_ends() -> None:
    add(size=1)
    (before,) = lease()
    pass_by(LEASE_S - 1)
    assert lease() == []

    pass_by(2)
    (after,) = lease()

    assert after.lease != before.lease
    for late in (lambda: batch_items.begin(before), lambda: end(before), lambda: end(before, "payment.bad_amount")):
        with pytest.raises(LeaseLostError):
            late()
    batch_items.put_off(before, pause_s=60)
    batch_items.give_back([before])
    assert batch_items.begin(after) == 1


def test_beginning_an_item_renews_its_lease() -> None:
    add(size=1)
    (item,) = lease()
    pass_by(LEASE_S - 1)
    batch_items.begin(item)
    pass_by(LEASE_S - 1)

    assert lease() == []


def test_an_item_ends_once() -> None:
    batch_id = add(size=2)
    success, error = lease()
    end(success)
    end(error, "payment.bad_amount")

    for again in (
        lambda: end(success),
        lambda: end(error),
        lambda: end(success, "x"),
        lambda: batch_items.begin(error),
    ):
        with pytest.raises(LeaseLostError):
            again()

    shown = [(item.status, item.result, item.error_code) for item in batch_items.page(batch_id, limit=9, offset=0)]
    assert shown == [("success", '{"n":1}', None), ("error", None, "payment.bad_amount")]
    assert rows("SELECT DISTINCT body, lease FROM batch_items") == [("", None)]


def test_two_transactions_over_one_item_run_in_turn() -> None:
    add(size=1)
    (item,) = lease()

    results = at_once(2, lambda _: end(item))

    assert sorted(type(result).__name__ for result in results) == ["LeaseLostError", "NoneType"]


def test_an_item_is_locked_in_the_transaction_of_its_effect() -> None:
    add(size=1)
    (item,) = lease()

    with pytest.raises(RuntimeError):
        batch_items.lock(item)


def test_the_count_of_begun_items_includes_workers_that_died() -> None:
    add(size=1)
    for begun in (1, 2, 3):
        (item,) = lease()
        assert batch_items.begin(item) == begun
        pass_by(LEASE_S + 1)
    (item,) = lease()
    batch_items.put_off(item, pause_s=5)
    assert lease() == []
    pass_by(6)

    (item,) = lease()

    assert (batch_items.begin(item), item.put_off) == (1, 1)


def test_a_returned_item_is_free_at_once_or_after_its_pause() -> None:
    add(size=4)
    items = lease()
    batch_items.give_back(items[:2])
    batch_items.give_back(items[2:], pause_s=10)

    assert places(lease()) == [0, 1]
    pass_by(11)
    assert places(lease()) == [2, 3]


# In order -----------------------------------------------------------------------------------------------------------


def test_an_ordered_batch_belongs_to_one_worker_at_a_time() -> None:
    add(size=6, on_error="stop")

    outcomes = at_once(4, lambda _: places(lease(2)))

    assert sorted(str(places_) for places_ in outcomes) == ["[0, 1]", "[]", "[]", "[]"]


def test_a_second_worker_of_an_ordered_batch_gets_no_item() -> None:
    """The batch was free when the round found it; the worker that locks it next checks again."""
    add(size=3, on_error="stop")
    (first,) = lease(1)

    with transaction():
        assert batch_items.lease(first.of, limit=9) == []


def test_an_ordered_batch_waits_for_its_waiting_item() -> None:
    add(size=3, on_error="stop")
    items = lease()
    batch_items.put_off(items[0], pause_s=5)
    batch_items.give_back(items[1:])

    assert lease() == []
    pass_by(6)
    assert places(lease()) == [0, 1, 2]


def test_an_item_is_not_done_before_the_items_ahead_of_it() -> None:
    add(size=2, on_error="stop")
    first, second = lease()

    with pytest.raises(LeaseLostError):
        end(second)
    with pytest.raises(LeaseLostError):
        end(second, "payment.bad_amount")
    end(first)
    end(second)


def test_the_first_failure_skips_only_the_items_behind_it() -> None:
    batch_id, other = add(size=4, on_error="stop"), add(size=1, on_error="stop")
    items = lease()
    mine = [item for item in items if item.of.id == batch_id]
    end(mine[0])
    end(mine[1], "payment.bad_amount")

    codes = [(item.status, item.error_code) for item in batch_items.page(batch_id, limit=9, offset=0)]
    assert codes == [("success", None), ("error", "payment.bad_amount"), *[("error", "batch.skipped")] * 2]
    assert [item.status for item in batch_items.page(other, limit=9, offset=0)] == ["pending"]


def test_a_failure_in_an_unordered_batch_skips_no_item() -> None:
    batch_id = add(size=2)
    end(lease()[0], "payment.bad_amount")

    assert [item.status for item in batch_items.page(batch_id, limit=9, offset=0)] == ["error", "pending"]


# Turns --------------------------------------------------------------------------------------------------------------


def test_places_of_a_round_are_shared_among_merchants() -> None:
    for size in (100, 100, 1):
        add(size=size)

    leased = lease(15)

    shares: dict[UUID, int] = {}
    for item in leased:
        shares[item.of.merchant_id] = shares.get(item.of.merchant_id, 0) + 1
    assert sum(shares.values()) >= 11
    assert len(shares) == 3
    assert max(shares.values()) <= 10


def test_a_round_serves_every_merchant_before_it_repeats() -> None:
    shops = sorted(merchant() for _ in range(WALK_MAX + 6))
    for shop in shops:
        add(shop, size=50)
    seen: list[UUID] = []
    after = NIL

    for _ in range(10):
        with transaction():
            turn = batches.lease_turn(limit=10, after=after)
        seen += turn.merchants
        after = turn.merchants[-1]

    assert seen == [*shops, *shops[: len(seen) - len(shops)]]


def test_a_merchant_alone_gets_all_places() -> None:
    shop = merchant()
    for _ in range(3):
        add(shop, size=4)

    assert len(lease(10)) == 10


def test_a_batch_is_completed_when_its_last_item_is_handled() -> None:
    shop = merchant()
    batch_id = add(shop, size=2)
    items = lease()

    for number, status in enumerate(["processing", "completed"]):
        end(items[number])
        batches.complete(column("SELECT id FROM batches"))
        batch = batches.find(shop, batch_id)
        assert batch is not None
        assert (batch.status, batch.succeeded) == (status, number + 1)
    before = one("SELECT completed_at FROM batches")
    batches.complete(column("SELECT id FROM batches"))

    assert one("SELECT completed_at FROM batches") == before
    assert lease() == []


@pytest.mark.parametrize("columns", ["status = 'success'", "status = 'error'", "result = 'x'", "error_code = 'x'"])
def test_an_item_succeeds_with_a_result_or_fails_with_a_reason(columns: str) -> None:
    add(size=1)

    with pytest.raises(psycopg2.errors.CheckViolation):
        execute(f"UPDATE batch_items SET {columns}")


def test_the_counts_of_a_completed_batch_are_read_without_its_items() -> None:
    shop = merchant()
    batch_id = add(shop, size=3)
    first, second, third = lease()
    end(first)
    end(second, "payment.bad_amount")
    read = batches.find(shop, batch_id)
    assert read is not None
    assert (read.succeeded, read.failed) == (1, 1)

    end(third)
    batches.complete(column("SELECT id FROM batches"))
    execute("DELETE FROM batch_items")

    read = batches.find(shop, batch_id)
    assert read is not None
    assert (read.status, read.count, read.succeeded, read.failed) == ("completed", 3, 2, 1)

"""The outbox is written with its event, leased once at a time, fair to merchants, and tried twelve times."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from core.ids import uuid7
from core.logs import counters
from core.secrets.secretbox import SecretBox, SecretBoxError
from models.db import base, clock
from models.db.base import execute, one, rows, transaction, value
from models.merchants.rows import create_merchant
from models.webhooks import outbox
from models.webhooks.outbox import Attempt, Delivery, Endpoint, Leased
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")

BOX = SecretBox("k1:" + "A" * 43 + "=")
URL = "https://shop.example/hooks"


def register(merchant_id: UUID, url: str = URL) -> Endpoint:
    with transaction():
        return outbox.register_endpoint(merchant_id, url, box=BOX)


def merchant(*, is_registered: bool = True) -> UUID:
    merchant_id = create_merchant("Shop").id
    if is_registered:
        register(merchant_id)
    return merchant_id


def emit(merchant_id: UUID, body: str = "{}", *, count: int = 1, url_callback: str | None = None) -> None:
    with transaction():
        for _ in range(count):
            outbox.emit(merchant_id, "invoice.paid", uuid7(), body, url_callback=url_callback, request_id="req-1")


def pile_up(merchant_id: UUID, count: int) -> None:
    """Write webhooks as emit does, for backlogs."""
    execute(
        "INSERT INTO webhook_deliveries (id, merchant_id, event, object_id, body)"
        " SELECT gen_random_uuid(), %s, 'invoice.paid', gen_random_uuid(), '{}' FROM generate_series(1, %s)",
        (merchant_id, count),
    )


def lease(
    limit: int = 100,
    *,
    per_merchant: int = 100,
    allowances: Mapping[UUID, int] | None = None,
    after: UUID | str = outbox.START,
) -> Leased:
    known = {str(shop): allowance for shop, allowance in (allowances or {}).items()}
    return outbox.lease_due(limit=limit, per_merchant=per_merchant, allowances=known, after=str(after))


def leased(limit: int = 100) -> list[Delivery]:
    return list(lease(limit).deliveries)


def record(delivery: Delivery, *, error: str | None = None, status_code: int | None = 200) -> str | None:
    attempt = Attempt(id=delivery.id, lease=delivery.lease, status_code=status_code, error=error)
    return outbox.record_attempts([attempt])[0]


def move_clock(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


def row(column: str, delivery_id: str) -> object:
    stored = one(f"SELECT {column} FROM webhook_deliveries WHERE id = %s", (delivery_id,))
    assert stored is not None
    return stored[0]


# Writing -----------------------------------------------------------------------------------------------------


def test_a_webhook_is_stored_as_it_will_be_sent() -> None:
    shop = merchant()
    body = '{"type": "payment",  "order_id": "ü\\n"}'
    emit(shop, body)
    (delivery,) = leased()
    assert (delivery.body, delivery.event, delivery.attempts, delivery.url) == (body, "invoice.paid", 0, None)
    assert (delivery.endpoint_url, delivery.request_id) == (URL, "req-1")


def test_a_webhook_is_rolled_back_with_its_event() -> None:
    shop = merchant()
    with contextlib.suppress(LookupError), transaction():
        outbox.emit(shop, "invoice.paid", uuid7(), "{}")
        raise LookupError("the event failed")
    assert leased() == []


def test_a_webhook_outside_a_transaction_is_refused() -> None:
    with pytest.raises(RuntimeError, match="transaction of its event"):
        outbox.emit(merchant(), "invoice.paid", uuid7(), "{}")


@pytest.mark.parametrize("url_callback", [None, "https://other.example/"])
def test_without_an_endpoint_no_webhook_is_written_even_for_a_callback(url_callback: str | None) -> None:
    shop = merchant(is_registered=False)
    with transaction():
        outbox.emit(shop, "invoice.paid", uuid7(), "{}", url_callback=url_callback)
    register(shop)
    assert (value("SELECT count(*) FROM webhook_deliveries"), leased()) == (0, [])


# Endpoints ---------------------------------------------------------------------------------------------------


def test_a_new_endpoint_takes_over_waiting_webhooks() -> None:
    shop = merchant()
    emit(shop)
    emit(shop, url_callback="https://callback.example/")
    replacement = register(shop, "https://new.example/")
    webhook = leased()
    assert {(d.url, d.endpoint_url) for d in webhook} == {
        (None, "https://new.example/"),
        ("https://callback.example/", "https://new.example/"),
    }
    for delivery in webhook:
        assert delivery.endpoint_id is not None
        assert delivery.secret_box is not None
        assert outbox.open_secret(delivery.endpoint_id, delivery.secret_box, box=BOX) == replacement.secret


def test_each_registration_makes_another_secret_and_one_endpoint_is_in_force() -> None:
    shop = merchant(is_registered=False)
    assert len({register(shop).secret for _ in range(3)}) == 3
    assert one("SELECT count(*), count(*) FILTER (WHERE replaced_at IS NULL) FROM webhook_endpoints") == (3, 1)


def test_replacing_endpoints_repeatedly_multiplies_no_webhooks() -> None:
    shop = merchant()
    register(shop)
    emit(shop)
    assert len(leased()) == 1


def test_the_secret_is_sealed_and_bound_to_its_endpoint() -> None:
    shop = merchant(is_registered=False)
    first, second = register(shop), register(shop)
    boxes = dict(rows("SELECT id, secret_box FROM webhook_endpoints"))
    assert first.secret not in boxes[first.id]
    assert outbox.open_secret(first.id, boxes[first.id], box=BOX) == first.secret
    with pytest.raises(SecretBoxError):
        outbox.open_secret(second.id, boxes[first.id], box=BOX)


def test_an_unknown_merchant_gets_no_endpoint() -> None:
    with pytest.raises(LookupError):
        register(uuid7())


def test_concurrent_registrations_leave_one_endpoint_in_force() -> None:
    shop = merchant(is_registered=False)

    def again(_number: int) -> None:
        for _ in range(5):
            register(shop)

    assert at_once(4, again) == [None] * 4
    assert one("SELECT count(*), count(*) FILTER (WHERE replaced_at IS NULL) FROM webhook_endpoints") == (20, 1)


def test_webhooks_of_a_deleted_endpoint_are_still_leased() -> None:
    shop = merchant()
    emit(shop)
    execute("UPDATE webhook_endpoints SET replaced_at = app_now()")
    (delivery,) = leased()
    assert (delivery.endpoint_id, delivery.endpoint_url, delivery.secret_box) == (None, None, None)


# Leases ------------------------------------------------------------------------------------------------------


def test_a_leased_webhook_is_free_again_when_its_lease_ends() -> None:
    emit(merchant())
    (first,) = leased()
    assert leased() == []
    move_clock(outbox.LEASE_S - 1)
    assert leased() == []
    move_clock(2)
    (second,) = leased()
    assert second.id == first.id
    assert second.lease != first.lease


def test_an_outcome_counts_only_under_its_own_lease() -> None:
    emit(merchant())
    (first,) = leased()
    move_clock(outbox.LEASE_S + 1)
    (second,) = leased()
    assert record(first) is None
    assert row("status", first.id) == "pending"
    assert row("lease::text", first.id) == second.lease
    assert record(second) == "delivered"


def test_a_retry_is_due_after_the_clock_was_set_back() -> None:
    emit(merchant())
    (delivery,) = leased()
    assert record(delivery, error="timeout") == "retrying"
    move_clock(-7_200)
    assert leased() == []
    assert clock.release_waits() == 1
    assert [again.id for again in leased()] == [delivery.id]


def test_an_outcome_counts_once() -> None:
    emit(merchant())
    (delivery,) = leased()
    assert record(delivery, error="timeout") == "retrying"
    assert record(delivery, error="timeout") is None
    assert row("attempts", delivery.id) == 1


def test_a_returned_webhook_is_free_at_once_and_counts_no_attempt() -> None:
    emit(merchant())
    (delivery,) = leased()
    outbox.give_back([delivery])
    (again,) = leased()
    assert (again.id, again.attempts) == (delivery.id, 0)


def test_another_workers_lease_cannot_be_returned() -> None:
    emit(merchant())
    (first,) = leased()
    move_clock(outbox.LEASE_S + 1)
    (second,) = leased()
    outbox.give_back([first])
    assert row("lease::text", first.id) == second.lease


def test_concurrent_leases_share_the_webhooks() -> None:
    pile_up(merchant(), 200)
    collected: list[str] = []

    def take(_number: int) -> None:
        while deliveries := leased(7):
            collected.extend(delivery.id for delivery in deliveries)

    assert at_once(4, take) == [None] * 4
    assert (len(collected), len(set(collected))) == (200, 200)


# Fairness ----------------------------------------------------------------------------------------------------


def test_a_backlog_does_not_delay_other_merchants() -> None:
    big, small = merchant(), merchant()
    pile_up(big, 500)
    emit(small)
    deliveries = lease(10, per_merchant=4).deliveries
    assert sorted(d.merchant_id == str(small) for d in deliveries) == [False] * 4 + [True]


def test_a_lease_continues_after_the_last_served_merchant() -> None:
    shops = sorted(merchant() for _ in range(5))
    for shop in shops:
        pile_up(shop, 10)
    first = lease(2, per_merchant=1)
    assert [UUID(d.merchant_id) for d in first.deliveries] == shops[:2]
    assert first.reached == str(shops[1])
    second = lease(10, per_merchant=1, after=shops[1])
    assert [UUID(d.merchant_id) for d in second.deliveries] == shops[2:]
    assert second.reached is None


def test_allowances_are_served_before_the_common_share() -> None:
    narrow, closed, wide, usual = shops = [merchant() for _ in range(4)]
    for shop in shops:
        pile_up(shop, 20)
    deliveries = lease(100, per_merchant=3, allowances={narrow: 1, closed: 0, wide: 9}).deliveries
    counts = {shop: sum(d.merchant_id == str(shop) for d in deliveries) for shop in shops}
    assert counts == {narrow: 1, closed: 0, wide: 9, usual: 3}


def test_the_oldest_due_webhooks_come_first() -> None:
    shop = merchant()
    for number in range(5):
        emit(shop, str(number))
        move_clock(1)
    assert [d.body for d in leased(3)] == ["0", "1", "2"]


def test_a_lease_passes_a_bounded_number_of_merchants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "WALK_MAX", 3)
    shops = sorted(merchant() for _ in range(5))
    for shop in shops:
        emit(shop)
    execute(
        "UPDATE webhook_deliveries SET next_attempt_at = app_now() + interval '1 h' WHERE merchant_id = ANY(%s)",
        (shops[:3],),
    )
    first = lease()
    assert (first.deliveries, first.reached) == ((), str(shops[2]))
    second = lease(after=shops[2])
    assert [UUID(d.merchant_id) for d in second.deliveries] == shops[3:]


def test_the_cost_of_a_lease_does_not_grow_with_the_backlog() -> None:
    shop = merchant()
    pile_up(shop, 1_000)
    small = _buffers()
    for _ in range(4):
        pile_up(shop, 10_000)
    execute("UPDATE webhook_deliveries SET next_attempt_at = app_now() + interval '1 h' WHERE random() < 0.5")
    assert _buffers() < small * 2 + 200


def _buffers() -> int:
    """Return the pages that one lease of ten touches."""
    execute("VACUUM webhook_deliveries")
    lines = rows(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT * FROM lease_webhooks(%s, 30, %s, 10, 256, 10, '{}', '{}')",
        (uuid7(), outbox.START),
    )
    text = next(line for (line,) in lines if "Buffers: shared" in line)
    return sum(int(part.partition("=")[2]) for part in text.split() if part.startswith(("hit=", "read=")))


# The schedule ------------------------------------------------------------------------------------------------


def test_a_webhook_is_dead_after_twelve_failures_on_schedule() -> None:
    emit(merchant())
    waits = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    for number, wait_s in enumerate(waits, start=1):
        (delivery,) = leased()
        assert delivery.attempts == number - 1
        assert record(delivery, error="answered 500", status_code=500) == "retrying"
        move_clock(wait_s - 2)
        assert leased() == []
        move_clock(3)
    (last,) = leased()
    assert record(last, error="answered 500", status_code=500) == "dead"
    move_clock(1_000_000)
    assert leased() == []
    assert row("(attempts, next_attempt_at, last_status_code, last_error)::text", last.id) == '(12,,500,"answered 500")'


def test_a_success_ends_it_and_clears_the_last_error() -> None:
    emit(merchant())
    (delivery,) = leased()
    record(delivery, error="timeout", status_code=None)
    move_clock(11)
    (again,) = leased()
    assert record(again, status_code=204) == "delivered"
    assert row("(attempts, next_attempt_at, last_status_code, last_error)::text", delivery.id) == "(2,,204,)"
    assert row("delivered_at IS NOT NULL", delivery.id) is True
    move_clock(1_000_000)
    assert leased() == []


def test_many_outcomes_are_recorded_together() -> None:
    pile_up(merchant(), 3)
    one_, two, three = leased()
    statuses = outbox.record_attempts(
        [
            Attempt(id=one_.id, lease=one_.lease, status_code=200, error=None),
            Attempt(id=two.id, lease=two.lease, status_code=None, error="timeout"),
            Attempt(id=three.id, lease=str(uuid7()), status_code=200, error=None),
        ]
    )
    assert statuses == ["delivered", "retrying", None]


def test_an_empty_outbox_costs_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    ask = base.run

    def noted(statement: str, *arguments: Sequence[object]) -> object:
        statements.append(statement)
        return ask(statement, *arguments)

    monkeypatch.setattr(base, "run", noted)
    assert lease() == Leased(deliveries=(), reached=None)
    assert len(statements) == 1


# The backlog -------------------------------------------------------------------------------------------------


def test_the_backlog_counts_all_merchants_and_has_the_age_of_its_oldest() -> None:
    first, second, third = merchant(), merchant(), merchant()
    emit(first, count=3)
    emit(second, count=2)
    emit(third)
    execute(
        "UPDATE webhook_deliveries SET next_attempt_at = app_now() + interval '1 h' WHERE merchant_id = %s", (third,)
    )
    execute(
        "UPDATE webhook_deliveries SET next_attempt_at = app_now() - interval '90 s'"
        " WHERE id = (SELECT min(id::text)::uuid FROM webhook_deliveries WHERE merchant_id = %s)",
        (second,),
    )
    backlog = outbox.read_backlog()
    assert backlog.due == 5
    assert 90 <= backlog.oldest_s < 120


def test_an_outbox_without_due_webhooks_has_no_age() -> None:
    assert outbox.read_backlog() == (0, 0.0)
    shop = merchant()
    emit(shop, count=2)
    record(leased(1)[0])
    record(leased(1)[0], error="timeout")
    assert outbox.read_backlog() == (0, 0.0)


def test_counting_stops_at_the_alarm_level_but_the_oldest_is_still_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "BACKLOG_COUNT_MAX", 7)
    shops = sorted(merchant() for _ in range(3))
    for shop in shops:
        pile_up(shop, 5)
    execute(
        "UPDATE webhook_deliveries SET next_attempt_at = app_now() - interval '90 s' WHERE merchant_id = %s",
        (shops[2],),
    )
    backlog = outbox.read_backlog()
    assert backlog.due == 7
    assert backlog.oldest_s >= 90


def test_reading_the_backlog_passes_a_bounded_number_of_merchants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BACKLOG_WALK_MAX", 2)
    for _ in range(4):
        emit(merchant())
    assert outbox.read_backlog().due == 2


def test_the_cost_of_reading_the_backlog_does_not_grow_with_it() -> None:
    first, second = merchant(), merchant()
    pile_up(first, 1_000)
    pile_up(second, 1_000)
    small = _look_buffers()
    for shop in [first, second] * 2:
        pile_up(shop, 10_000)
    execute("UPDATE webhook_deliveries SET next_attempt_at = app_now() + interval '1 h' WHERE random() < 0.5")
    assert _look_buffers() < small * 2 + 200


def _look_buffers() -> int:
    execute("VACUUM webhook_deliveries")
    lines = rows("EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT * FROM webhook_backlog(1000, 1000)")
    text = next(line for (line,) in lines if "Buffers: shared" in line)
    return sum(int(part.partition("=")[2]) for part in text.split() if part.startswith(("hit=", "read=")))


# Columns of a lease -------------------------------------------------------------------------------------------


def test_a_lease_names_the_endpoint_that_it_sends_to() -> None:
    shop = merchant(is_registered=False)
    former = register(shop)
    emit(shop)
    (delivery,) = leased()
    assert row("sent_to", delivery.id) == former.id
    record(delivery, error="timeout")
    current = register(shop, "https://new.example/")
    move_clock(11)
    leased()
    assert row("sent_to", delivery.id) == current.id


def test_ends_of_deliveries_are_counted_by_outcome() -> None:
    emit(merchant(), count=3)
    first, second, third = leased()
    record(first)
    record(second, error="refused")
    execute("UPDATE webhook_deliveries SET attempts = %s WHERE id = %s", (outbox.ATTEMPTS_MAX - 1, third.id))
    record(third, error="refused")

    assert counters.snapshot() == {
        ("sluice_webhooks_ended", ("delivered",)): [1],
        ("sluice_webhooks_ended", ("dead",)): [1],
    }

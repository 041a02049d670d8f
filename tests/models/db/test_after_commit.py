"""Notifications are sent once, after the commit, and no step depends on whether they can be sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import peewee
import pytest
import structlog

from actors.queue.schedule import DOORBELLS
from core.logs import counters
from models.db import after_commit
from models.db.after_commit import Bell, count, ring, then
from models.db.base import execute, in_transaction, part, repeat_on_deadlock, transaction
from tests.models.db.collisions import at_once

pytestmark = pytest.mark.usefixtures("database")


def within(scope: Callable[[], AbstractContextManager[None]], *works: Callable[[], object]) -> None:
    with scope():
        for work in works:
            work()


def fail(*_bell: str) -> None:
    raise LookupError


def test_a_notification_waits_for_the_commit(rung: list[str]) -> None:
    seen: list[bool] = []
    after_commit.use(lambda *_bell: seen.append(in_transaction()))
    with transaction():
        ring(Bell.DELIVER_WEBHOOKS)
        assert seen == []

    assert (seen, rung) == ([False], [])


def test_outside_a_transaction_a_notification_is_sent_at_once(rung: list[str]) -> None:
    for _ in range(2):
        ring(Bell.BROADCAST, "ethereum")

    assert rung == ["broadcast:ethereum"] * 2


def test_equal_notifications_of_a_transaction_are_sent_once_in_order(rung: list[str]) -> None:
    with transaction():
        for network in ("polygon", "ethereum", "polygon"):
            ring(Bell.DELIVER_WEBHOOKS)
            ring(Bell.BROADCAST, network)

    assert rung == ["deliver_webhooks", "broadcast:polygon", "broadcast:ethereum"]


def test_a_rolled_back_transaction_sends_no_notification(rung: list[str]) -> None:
    with pytest.raises(LookupError):
        within(transaction, lambda: ring(Bell.DELIVER_WEBHOOKS), fail)
    within(transaction)

    assert rung == []


def test_a_transaction_whose_commit_fails_sends_no_notification(rung: list[str]) -> None:
    execute("CREATE TABLE things (id integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    twice = "INSERT INTO things VALUES (1), (1)"
    with pytest.raises(peewee.IntegrityError):
        within(transaction, lambda: ring(Bell.DELIVER_WEBHOOKS), lambda: execute(twice))

    assert rung == []


def test_a_rolled_back_savepoint_drops_its_notifications(rung: list[str]) -> None:
    with transaction():
        ring(Bell.DELIVER_EMAILS)
        within(part, lambda: ring(Bell.BROADCAST, "ethereum"))
        with pytest.raises(LookupError):
            within(part, lambda: ring(Bell.DELIVER_EMAILS), lambda: ring(Bell.DELIVER_WEBHOOKS), fail)
        assert rung == []

    assert rung == ["deliver_emails", "broadcast:ethereum"]


def test_a_step_runs_after_the_commit_alone(rung: list[str]) -> None:
    done: list[tuple[str, bool]] = []

    def step(name: str) -> None:
        done.append((name, in_transaction()))

    with transaction():
        then(lambda: step("outer"))
        within(part, lambda: then(lambda: step("part")))
        with pytest.raises(LookupError):
            within(part, lambda: then(lambda: step("lost")), fail)
        assert done == []
    assert done == [("outer", False), ("part", False)]
    with pytest.raises(LookupError):
        within(transaction, lambda: then(lambda: step("lost")), fail)
    then(lambda: step("at once"))
    assert done[2:] == [("at once", False)]
    assert rung == []


def test_a_repeated_step_sends_the_notifications_of_its_last_attempt(rung: list[str]) -> None:
    attempts: list[str] = []

    def step() -> None:
        with transaction():
            attempts.append("polygon" if attempts else "ethereum")
            ring(Bell.BROADCAST, attempts[-1])
            if len(attempts) == 1:
                execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")

    repeat_on_deadlock(step)

    assert (attempts, rung) == (["ethereum", "polygon"], ["broadcast:polygon"])


def test_a_thread_sends_only_its_own_notifications(rung: list[str]) -> None:
    with transaction():
        ring(Bell.DELIVER_EMAILS)
        assert at_once(1, lambda _number: ring(Bell.DELIVER_WEBHOOKS)) == [None]
        assert rung == ["deliver_webhooks"]

    assert rung == ["deliver_webhooks", "deliver_emails"]


def test_failing_notifications_are_logged_and_not_raised(rung: list[str]) -> None:
    after_commit.use(fail)
    with structlog.testing.capture_logs() as lines:
        with transaction():
            execute("CREATE TABLE things ()")
            ring(Bell.DELIVER_WEBHOOKS)
            ring(Bell.DELIVER_EMAILS)
        ring(Bell.RUN_BATCHES)

    assert [(line["event"], line["doorbell"]) for line in lines] == [
        ("doorbell.not_rung", name) for name in ("deliver_webhooks", "deliver_emails", "run_batches")
    ]
    assert (execute("INSERT INTO things DEFAULT VALUES"), rung) == (1, [])


def test_every_notification_of_models_has_an_actor() -> None:
    assert {*Bell} <= DOORBELLS.keys()


def test_a_silent_redis_delays_once_and_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tries = [100.0], []

    def hang(*bell: str) -> None:
        tries.append(bell)
        now[0] += after_commit.SILENT_S
        raise OSError

    monkeypatch.setattr(after_commit, "monotonic", lambda: now[0])
    after_commit.use(hang)
    for _ in range(3):
        within(transaction, lambda: ring(Bell.DELIVER_WEBHOOKS))
    assert len(tries) == 1
    now[0] += after_commit.QUIET_S
    ring(Bell.DELIVER_WEBHOOKS)
    assert len(tries) == 2


def counted() -> dict[str, int]:
    return {labels[0]: numbers[0] for (_, labels), numbers in counters.snapshot().items()}


def test_counts_wait_for_the_commit_and_fall_with_what_is_rolled_back() -> None:
    def ended(outcome: str) -> Callable[[], None]:
        return lambda: count("sluice_payouts_ended", outcome)

    with transaction():
        ended("confirmed")()
        ended("confirmed")()
        within(part, ended("failed"))
        with pytest.raises(LookupError):
            within(part, ended("failed"), fail)
        assert counted() == {}
    with pytest.raises(LookupError):
        within(transaction, ended("confirmed"), fail)
    assert counted() == {"confirmed": 2, "failed": 1}
    ended("cancelled")()

    assert counted() == {"confirmed": 2, "failed": 1, "cancelled": 1}

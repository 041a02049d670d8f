from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import redis

from actors.queue import broker as queue_broker
from actors.queue import doorbells
from actors.queue.broker import SluiceBroker, doorbell, ring
from actors.queue.link import LinkDownError
from actors.queue.schedule import DOORBELLS, rings
from devstack.servers.valkey import Valkey
from models.db import after_commit
from models.db.base import transaction
from tests.actors.queue.workers import NAMESPACE, declare, eventually, make_settings, working

# A row without arguments, and a row with one.
PLAIN = "settle_due_invoices"
PER_NETWORK = "poll_network"
PLAIN_QUEUE = DOORBELLS[PLAIN].queue


def declare_doorbell(broker: SluiceBroker, function: Callable[..., None], *, name: str = PLAIN) -> None:
    declare(broker, doorbells._answering(function, broker), name=name, queue=DOORBELLS[name].queue)


def waiting(broker: SluiceBroker, queue: str = PLAIN_QUEUE) -> int:
    return broker.backlog(queue).waiting


# Notifications ------------------------------------------------------------------------------------------------------


def test_a_notification_runs_the_actor_once(broker: SluiceBroker) -> None:
    runs: list[int] = []
    declare_doorbell(broker, lambda: runs.append(1))
    with working(broker):
        assert broker.ring(PLAIN)
        eventually(lambda: runs and broker.do_qsize(PLAIN_QUEUE) == 0)

    assert runs == [1]


def test_waiting_notifications_are_one(broker: SluiceBroker) -> None:
    runs: list[int] = []
    declare_doorbell(broker, lambda: runs.append(1))

    assert [broker.ring(PLAIN) for _ in range(5)] == [True, False, False, False, False]
    assert waiting(broker) == 1


def test_a_notification_during_the_run_is_kept(broker: SluiceBroker) -> None:
    """Otherwise rows that came after the actor looked would wait for the next tick."""
    runs, begun, gate = [], threading.Event(), threading.Event()

    def slow() -> None:
        runs.append(1)
        begun.set()
        gate.wait(60)

    declare_doorbell(broker, slow)
    with working(broker, threads=1):
        broker.ring(PLAIN)
        assert begun.wait(60)
        assert broker.ring(PLAIN)
        gate.set()
        eventually(lambda: len(runs) == 2)


def test_notifications_with_different_arguments_are_separate(broker: SluiceBroker) -> None:
    given: list[str] = []
    declare_doorbell(broker, given.append, name=PER_NETWORK)
    with working(broker, threads=1):
        assert broker.ring(PER_NETWORK, "ethereum")
        assert broker.ring(PER_NETWORK, "polygon")
        eventually(lambda: given == ["ethereum", "polygon"])


def test_a_lost_notification_is_repeated_when_its_patience_ends(
    broker: SluiceBroker, server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a worker that was killed with the message."""
    monkeypatch.setattr("actors.queue.schedule.PATIENCE_INTERVALS", 0)
    monkeypatch.setattr("actors.queue.schedule.PATIENCE_MIN_MS", 200)
    broker.ring(PLAIN)
    server.delete(f"{NAMESPACE}:{PLAIN_QUEUE}", f"{NAMESPACE}:{PLAIN_QUEUE}.msgs")

    assert not broker.ring(PLAIN)
    time.sleep(0.25)
    assert broker.ring(PLAIN)


def test_notifications_do_not_pile_up_without_a_worker(broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.queue.schedule.PATIENCE_INTERVALS", 0)
    monkeypatch.setattr("actors.queue.schedule.PATIENCE_MIN_MS", 0)
    monkeypatch.setattr(queue_broker, "WAITING_MAX", 10)
    for _ in range(50):
        broker.ring(PLAIN)
    assert waiting(broker) == 10
    runs: list[int] = []
    declare_doorbell(broker, lambda: runs.append(1))

    with working(broker, threads=1):
        eventually(lambda: broker.do_qsize(PLAIN_QUEUE) == 0)
    assert runs == [1]


def test_a_flush_suppresses_no_later_notification(broker: SluiceBroker, server: redis.Redis) -> None:
    broker.ring(PLAIN)
    server.flushall()

    assert broker.ring(PLAIN)
    assert waiting(broker) == 1


def test_a_notification_survives_a_step_of_redis_clock(broker: SluiceBroker, server: redis.Redis) -> None:
    """A mark from the future must not silence an actor."""
    broker.ring(PLAIN)
    server.set(f"{NAMESPACE}:bell:{PLAIN}", int((time.time() + 3_600) * 1000))

    assert broker.ring(PLAIN)


def test_a_notification_that_cannot_be_checked_is_delivered(
    broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    answer = doorbells._answering(lambda: runs.append(1), broker)

    def cut(*_: object, **__: object) -> None:
        raise LinkDownError("cut")

    monkeypatch.setattr(broker.link, "run", cut)
    answer(bell=PLAIN)

    assert runs == [1]


def test_arguments_of_a_newer_version_are_ignored(broker: SluiceBroker) -> None:
    given: list[str] = []

    def known(network: str) -> None:
        given.append(network)

    doorbells._answering(known, broker)("ethereum", "deeper", colour="green")

    assert given == ["ethereum"]


def test_a_failed_actor_runs_again_at_the_next_notification(broker: SluiceBroker) -> None:
    runs: list[int] = []

    def fail_once() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise ValueError("as planned")

    declare_doorbell(broker, fail_once)
    with working(broker):
        broker.ring(PLAIN)
        eventually(lambda: broker.do_qsize(PLAIN_QUEUE) == 0 and runs)
        assert broker.ring(PLAIN)
        eventually(lambda: len(runs) == 2)


# `ring()`, as actors use it -----------------------------------------------------------------------------------------


@pytest.fixture
def process_broker(broker: SluiceBroker) -> SluiceBroker:
    after_commit.use(broker.ring)
    return broker


@pytest.mark.usefixtures("database")
def test_an_actor_notifies_after_its_commit(process_broker: SluiceBroker) -> None:
    with transaction():
        ring(PLAIN)
        assert waiting(process_broker) == 0

    assert waiting(process_broker) == 1


@pytest.mark.usefixtures("database", "process_broker")
def test_notifying_without_redis_raises_nothing(valkey: Valkey) -> None:
    valkey.stop()
    try:
        ring(PLAIN)
    finally:
        valkey.start()


def test_notifying_an_unknown_actor_is_refused() -> None:
    with pytest.raises(ValueError, match="no doorbell"):
        ring("deliver_webhoks")


@pytest.mark.parametrize(
    ("queue", "arguments"), [("chain", None), (PLAIN_QUEUE, "networks"), ("nowhere", None)], ids=str
)
def test_an_actor_that_differs_from_its_row_is_refused(queue: str, arguments: str | None) -> None:
    def settle_due_invoices() -> None: ...

    with pytest.raises(ValueError, match="no row"):
        doorbell(queue=queue, arguments=arguments)(settle_due_invoices)  # type: ignore[arg-type]


# The rows -----------------------------------------------------------------------------------------------------------


def test_every_network_with_providers_is_polled_at_the_pace_of_its_blocks() -> None:
    settings = make_settings(tick_interval_ms=100)
    polls = {ring.args: ring.every_ms for ring in rings(settings) if ring.doorbell.actor == PER_NETWORK}

    assert set(polls) == {("ethereum",), ("polygon",)}
    assert all(100 <= every_ms <= 5_000 for every_ms in polls.values())


def test_no_actor_is_notified_more_often_than_the_settings_allow() -> None:
    settings = make_settings(tick_interval_ms=60_000)

    assert {r.every_ms for r in rings(settings) if r.doorbell.is_paced_by_blocks} == {60_000}


def test_a_family_is_notified_once_for_all_its_networks() -> None:
    filled = [ring.args for ring in rings(make_settings()) if ring.doorbell.actor == "fill_address_pool"]

    assert filled == [("evm",)]


def test_patience_is_longer_than_the_interval_unless_the_scheduler_only_sweeps() -> None:
    for ring_ in rings(make_settings()):
        assert ring_.doorbell.is_sweep or ring_.doorbell.patience_ms > ring_.doorbell.every_ms


@pytest.mark.parametrize("actor", ["resume_signing", "seek_departures"])
def test_recovery_is_swept_rarely_on_every_network(actor: str) -> None:
    swept = {ring.args: ring.every_ms for ring in rings(make_settings()) if ring.doorbell.actor == actor}
    assert swept == {("ethereum",): 30_000, ("polygon",): 30_000}


def test_a_lost_notification_delays_no_later_one_until_the_next_sweep() -> None:
    """A worker was killed with the message: the mark in Redis stays, and would silence the code that writes work."""
    for row in DOORBELLS.values():
        assert row.patience_ms <= 5_000 or not row.is_sweep

"""A process stays alive in Redis while all its threads are busy, and keeps its messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import redis

from actors.queue import consumer, delayed
from actors.queue.broker import SluiceBroker
from actors.queue.gathering import PullingQueue
from tests.actors.queue.workers import NAMESPACE, QUEUE, declare, eventually, make_broker, working

HEARTBEATS = f"{NAMESPACE}:__heartbeats__"
# A broker whose threads fetch by themselves, and one with a thread for fetching.
QUEUES = (QUEUE, "maintenance")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed, "BEAT_S", 0.02)
    monkeypatch.setattr(consumer, "MAINTENANCE_S", 0.0)


@pytest.fixture
def other(redis_url: str) -> Iterator[SluiceBroker]:
    """Return the broker of another process."""
    made = make_broker(redis_url)
    yield made
    made.link.close()


class Work:
    """An actor that works until it is released."""

    def __init__(self, broker: SluiceBroker, queue: str) -> None:
        self.begun = threading.Semaphore(0)
        self.release = threading.Event()
        self.runs = 0
        declare(broker, self, queue=queue)

    __name__ = "work"

    def __call__(self) -> None:
        self.runs += 1
        self.begun.release()
        # Longer than a test waits for a heartbeat, since an acknowledgement is one, too.
        self.release.wait(300)


def age_ms(broker: SluiceBroker, server: redis.Redis) -> float:
    """Return the age of this broker's last heartbeat."""
    beat_ms = server.zscore(HEARTBEATS, broker.broker_id)
    return broker.link.now_ms() - (beat_ms or 0.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_messages_of_a_process_with_busy_threads_are_not_given_to_others(
    broker: SluiceBroker, other: SluiceBroker, server: redis.Redis, queue: str
) -> None:
    work = Work(broker, queue)
    with working(broker, threads=2) as worker:
        assert isinstance(worker.work_queue, PullingQueue) is (queue == QUEUE)
        for _ in range(2):
            broker.get_actor("work").send()
        for _ in range(2):
            assert work.begun.acquire(timeout=60)
        # As after a minute without a heartbeat.
        server.zadd(HEARTBEATS, {broker.broker_id: 0})
        eventually(lambda: age_ms(broker, server) < 30_000)
        assert next(other.consume(queue, prefetch=1, timeout=50)) is None
        work.release.set()

    assert work.runs == 2


@pytest.mark.parametrize("queue", QUEUES)
def test_a_process_with_busy_threads_still_serves_its_queue(
    broker: SluiceBroker, other: SluiceBroker, queue: str
) -> None:
    work = Work(broker, queue)
    with working(broker, threads=1):
        broker.get_actor("work").send()
        assert work.begun.acquire(timeout=60)
        other.link.run([("DEL", f"{NAMESPACE}:heartbeats:{queue}")])
        eventually(lambda: other.heartbeats.consumers(queue) == 1)
        work.release.set()


def test_a_process_sends_heartbeats_while_its_threads_finish_at_a_stop(
    broker: SluiceBroker, other: SluiceBroker, server: redis.Redis
) -> None:
    work = Work(broker, "maintenance")
    with working(broker, threads=1):
        broker.get_actor("work").send()
        assert work.begun.acquire(timeout=60)
        broker.stop_waiting()
        server.zadd(HEARTBEATS, {broker.broker_id: 0})
        eventually(lambda: age_ms(broker, server) < 30_000)
        assert next(other.consume("maintenance", prefetch=1, timeout=50)) is None
        work.release.set()

    assert work.runs == 1


def test_a_process_with_its_maximum_of_delayed_messages_sends_heartbeats(
    broker: SluiceBroker, server: redis.Redis
) -> None:
    declare(broker, lambda: None)
    for _ in range(2):
        broker.get_actor("work").send_with_options(delay=600_000)
    full = broker.consume(f"{QUEUE}.DQ", prefetch=1, timeout=50)
    assert next(full) is not None
    server.zadd(HEARTBEATS, {broker.broker_id: 0})

    eventually(lambda: next(full) is None and age_ms(broker, server) < 30_000)
    assert len(broker.unsettled(f"{QUEUE}.DQ")) == 1
    full.close()


def test_no_connection_waits_in_redis_for_delayed_messages(broker: SluiceBroker) -> None:
    began = time.monotonic()

    assert next(broker.consume("maintenance.DQ", prefetch=1, timeout=120_000)) is None

    assert time.monotonic() - began < 60


def test_a_message_that_arrives_while_a_process_stops_is_left_to_others(broker: SluiceBroker) -> None:
    declare(broker, lambda: None, queue="maintenance")
    waiting = broker.consume("maintenance", prefetch=1, timeout=50)
    broker.stop_waiting()
    broker.get_actor("work").send()

    assert next(waiting) is None
    assert broker.backlog("maintenance").waiting == 1

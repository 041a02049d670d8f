"""Each message is counted by its actor under dramatiq's names, and a fault that an actor reports itself too."""

from __future__ import annotations

import time
from typing import Final

import pytest
from dramatiq import Message
from dramatiq.broker import MessageProxy
from dramatiq.middleware.prometheus import Prometheus

from actors.queue.broker import SluiceBroker
from actors.queue.gathering import Gathering, as_one
from actors.queue.isolated import isolated
from actors.queue.middleware import Entrance
from core.ids import uuid7
from core.logs import counters
from core.logs.counters import FAMILIES
from tests.actors.queue.workers import QUEUE, declare, eventually, working

WORK: Final = (QUEUE, "work")


def message(*args: object, actor: str = "work", **options: object) -> Message[None]:
    return Message(queue_name=QUEUE, actor_name=actor, args=args, kwargs={}, options=options)


def number(family: str, labels: tuple[str, str] = WORK) -> int:
    return counters.snapshot().get((family, labels), [0])[0]


def fail() -> None:
    raise LookupError("a bug")


def act(kind: str) -> None:
    time.sleep(0.02)
    if kind == "isolated":
        isolated(uuid7(), fail)
    if kind == "fails":
        fail()


@pytest.mark.usefixtures("database")
def test_messages_and_failures_are_counted_by_actor(broker: SluiceBroker) -> None:
    declare(broker, act)
    with working(broker, threads=1):
        for kind in ("does", "isolated", "does", "fails", "does"):
            broker.enqueue(message(kind))
        eventually(lambda: number("dramatiq_messages") == 5)

    assert number("dramatiq_message_errors") == 2
    took_ms, *buckets = counters.snapshot()["dramatiq_message_duration_milliseconds", WORK]
    assert took_ms >= 5 * 20
    assert sum(buckets) == 5
    assert sum(buckets[:2]) == 0, "none took 10 ms or less"


def test_a_gathering_counts_as_the_messages_that_it_settled(broker: SluiceBroker) -> None:
    gathering = Gathering(tuple(message(redis_message_id=each) for each in "abc"), settled={"a", "c"})
    entrance = Entrance()
    entrance.before_process_message(broker, as_one(gathering))
    entrance.after_process_message(broker, as_one(gathering))

    assert number("dramatiq_messages") == 2
    assert sum(counters.snapshot()["dramatiq_message_duration_milliseconds", WORK][1:]) == 2


def test_rejected_messages_of_unknown_actors_have_one_label(broker: SluiceBroker) -> None:
    declare(broker, act)
    for actor in ("work", "made-up-1", "made-up-2"):
        Entrance().after_nack(broker, MessageProxy(message(actor=actor)))

    assert number("dramatiq_message_rejects") == 1
    assert number("dramatiq_message_rejects", (QUEUE, "(unknown)")) == 2


def test_the_names_and_buckets_are_those_of_dramatiq() -> None:
    theirs = Prometheus()
    theirs.after_process_boot(None)
    durations = theirs.message_durations
    shown = {metric.name: metric for each in (theirs.total_messages, theirs.total_errored_messages,
             theirs.total_rejected_messages, durations) for metric in each.collect()}  # fmt: skip

    assert shown.keys() == {name for name in FAMILIES if name.startswith("dramatiq_")}
    assert all(FAMILIES[name].labels == ("queue_name", "actor_name") for name in shown)
    assert (*map(float, FAMILIES[durations._name].bounds), float("inf")) == tuple(durations._upper_bounds)

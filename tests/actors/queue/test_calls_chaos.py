"""Makes many calls while workers are killed and stopped and Redis is flushed: every answer is true."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

import pytest
import redis

from actors.queue.broker import SluiceBroker
from actors.queue.caller import Caller
from core.errors import DomainError
from models.db import base
from models.db.base import rows
from tests.actors.queue.test_calls_killed import WorkerProcess
from tests.actors.queue.workers import QUEUE, call_info, create_effects, make_broker, make_settings
from tests.devstack.waiting import wait_for

SHORT_S: Final = 6.0
LONG_S: Final = 120.0
CALLERS: Final = 8


@pytest.mark.parametrize(
    "duration_s", [SHORT_S, pytest.param(LONG_S, marks=(pytest.mark.soak, pytest.mark.timeout(300)))]
)
def test_every_answer_is_true(redis_url: str, database: str, duration_s: float) -> None:
    create_effects()
    broker = make_broker(redis_url)
    answers: dict[str, bool] = {}
    stopping = threading.Event()
    threads = [
        threading.Thread(target=keep_calling, args=(broker, stopping, answers, number)) for number in range(CALLERS)
    ]
    threads.append(threading.Thread(target=keep_flushing, args=(redis_url, stopping)))
    threads += [
        threading.Thread(target=keep_harming, args=(lambda: WorkerProcess(redis_url, database, "none"), stopping, seed))
        for seed in range(2)
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(duration_s)
        # On a busy machine no worker may have started.
        wait_for(lambda: set(answers.copy().values()) == {True, False})
    finally:
        stopping.set()
    for thread in threads:
        thread.join()
    broker.link.close()

    effects = [name for (name,) in rows("SELECT name FROM testing.effects")]
    assert sorted(effects) == sorted(name for name, took_effect in answers.items() if took_effect)


def keep_calling(broker: SluiceBroker, stopping: threading.Event, answers: dict[str, bool], caller_number: int) -> None:
    caller = Caller(broker, make_settings(call_wait_s=1.0, call_slots=2 * CALLERS))
    for number in itertools.count():
        if stopping.is_set():
            break
        name = f"{caller_number}-{number}"
        try:
            caller.call("work", queue=QUEUE, info=call_info(name), payload=name.encode())
            answers[name] = True
        except DomainError:
            answers[name] = False
    base.close()
    broker.link.close()


def keep_flushing(redis_url: str, stopping: threading.Event) -> None:
    with redis.Redis.from_url(redis_url) as server:
        while not stopping.wait(0.7):
            server.flushall()


def keep_harming(start: Callable[[], WorkerProcess], stopping: threading.Event, seed: int) -> None:
    """Keep a worker running, and time and again kill it or stop it for longer than a call waits."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    while not stopping.is_set():
        worker = start()
        worker.wait_for("ready")
        stopping.wait(chance.uniform(0.5, 2.0))
        if chance.random() < 0.5:
            worker.signal(signal.SIGSTOP)
            stopping.wait(1.5)
            worker.signal(signal.SIGCONT)
            stopping.wait(0.3)
        worker.end()

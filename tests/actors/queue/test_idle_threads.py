"""Few threads run while there is little work, and all of them when there is much."""

from __future__ import annotations

import contextlib
import threading
import time
from queue import Empty
from typing import Final

import pytest

from actors.queue.broker import SluiceBroker
from actors.queue.idle_threads import FewestThreadsQueue
from tests.actors.queue.workers import declare, eventually, working

THREADS: Final = 4


def test_successive_messages_are_worked_on_by_one_thread(broker: SluiceBroker) -> None:
    workers: list[int] = []
    declare(broker, lambda: workers.append(threading.get_ident()), queue="maintenance")
    with working(broker, threads=THREADS, timeout_ms=2_000) as worker:
        waiting = worker.work_queue
        assert isinstance(waiting, FewestThreadsQueue)
        for count in range(1, 13):
            eventually(lambda: len(waiting._waiting) == THREADS)
            broker.get_actor("work").send()
            eventually(lambda count=count: len(workers) == count)

    assert len(set(workers)) == 1


def test_simultaneous_messages_are_worked_on_by_all_threads(broker: SluiceBroker) -> None:
    together = threading.Barrier(THREADS)
    passed: list[int] = []

    def meet() -> None:
        passed.append(together.wait(30))

    declare(broker, meet, queue="maintenance")
    with working(broker, threads=THREADS):
        for _ in range(THREADS):
            broker.get_actor("work").send()
        eventually(lambda: len(passed) == THREADS)


def test_a_thread_that_does_not_wait_gets_no_message() -> None:
    with pytest.raises(Empty):
        FewestThreadsQueue().get(block=False)


def test_threads_wait_without_polling_until_the_worker_stops(broker: SluiceBroker) -> None:
    declare(broker, lambda: None, queue="maintenance")
    with working(broker, threads=THREADS, timeout_ms=1) as worker:
        waiting = worker.work_queue
        assert isinstance(waiting, FewestThreadsQueue)
        eventually(lambda: len(waiting._waiting) == THREADS)
        turns = dict(waiting._waiting)
        # Longer than dramatiq's timeout, after which each thread would poll again.
        time.sleep(0.02)
        assert waiting._waiting == turns

    assert not any(thread.is_alive() for thread in worker.workers)


def test_a_message_that_arrives_while_a_worker_stops_is_left_to_others() -> None:
    waiting = FewestThreadsQueue()
    waiting.stop()
    waiting.put("message")

    with pytest.raises(Empty):
        waiting.get(timeout=60)

    assert waiting.get(block=False) == "message"


def test_no_message_is_lost_between_starting_and_ending_threads() -> None:
    waiting, sent, taken = FewestThreadsQueue(), 2_000, []

    def take() -> None:
        with contextlib.suppress(Empty):
            while True:
                taken.append(waiting.get(timeout=60))

    threads = [threading.Thread(target=take) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for number in range(sent):
        waiting.put(number)
        if number % 20 == 0:
            time.sleep(0.001)
    eventually(lambda: len(taken) == sent)
    waiting.stop()
    for thread in threads:
        thread.join()

    assert sorted(taken) == list(range(sent))

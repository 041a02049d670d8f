"""Few threads work while little is to be done, and all of them when there is much."""

from __future__ import annotations

import threading
import time
from queue import Empty
from typing import Final

import pytest

from actors.queue.broker import SluiceBroker
from actors.queue.idle_threads import FewestThreadsQueue
from tests.actors.queue.workers import declare, eventually, working

THREADS: Final = 4


def test_messages_one_after_another_are_worked_on_by_one_thread(broker: SluiceBroker) -> None:
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


def test_messages_at_once_are_worked_on_by_all_threads(broker: SluiceBroker) -> None:
    together = threading.Barrier(THREADS)
    passed: list[int] = []

    def meet() -> None:
        passed.append(together.wait(30))

    declare(broker, meet, queue="maintenance")
    with working(broker, threads=THREADS):
        for _ in range(THREADS):
            broker.get_actor("work").send()
        eventually(lambda: len(passed) == THREADS)


def test_a_wait_ends_without_a_message_and_leaves_no_trace() -> None:
    waiting = FewestThreadsQueue()

    with pytest.raises(Empty):
        waiting.get(timeout=0.05)
    with pytest.raises(Empty):
        waiting.get(block=False)

    assert not waiting._waiting


def test_no_message_is_lost_between_threads_whose_waits_end() -> None:
    waiting, sent, taken = FewestThreadsQueue(), 2_000, []
    ends_at = time.monotonic() + 60

    def take() -> None:
        while len(taken) < sent and time.monotonic() < ends_at:
            try:
                taken.append(waiting.get(timeout=0.001))
            except Empty:
                continue

    threads = [threading.Thread(target=take) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for number in range(sent):
        waiting.put(number)
        if number % 20 == 0:
            time.sleep(0.001)
    for thread in threads:
        thread.join()

    assert sorted(taken) == list(range(sent))

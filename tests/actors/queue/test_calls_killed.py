"""Calls whose worker is killed or stopped in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from actors.queue.broker import SluiceBroker
from actors.queue.caller import Caller, CallInfo, CallReply
from actors.queue.gathering import GATHER_MAX
from core.errors import GatewayBusy
from models.db import base
from models.db.base import one
from tests.actors.queue.workers import (
    QUEUE,
    call_info,
    declare_call,
    effects,
    eventually,
    give_up,
    make_broker,
    make_settings,
    take_effect,
    take_effect_together,
    working,
)

pytestmark = [pytest.mark.fresh_database, pytest.mark.usefixtures("effects_table")]
ROOT: Final = Path(__file__).parents[3]
# Longer than any test: the test ends the wait when its worker is at the right place.
WAIT_S: Final = 90.0
FIRST: Final = b'{"number":1}'


class WorkerProcess:
    """A worker that prints where it pauses."""

    def __init__(self, redis_url: str, database_url: str, pause_at: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.actors.queue.worker_process"],
            cwd=ROOT,
            env={**os.environ, "REDIS_URL": redis_url, "DATABASE_URL": database_url, "PAUSE_AT": pause_at},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, line: str) -> None:
        assert self._process.stdout is not None
        for printed in self._process.stdout:
            if printed.strip() == line:
                return
        raise AssertionError(f"the worker ended before {line!r}")

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def start(broker: SluiceBroker, redis_url: str, database: str) -> Iterator[Callable[..., WorkerProcess]]:
    del broker
    started: list[WorkerProcess] = []

    def launch(pause_at: str, until: str = "ready") -> WorkerProcess:
        worker = WorkerProcess(redis_url, database, pause_at)
        started.append(worker)
        worker.wait_for(until)
        return worker

    yield launch
    for worker in started:
        worker.end()


class Waiting:
    """A call under way on its own thread."""

    def __init__(self, broker: SluiceBroker, info: CallInfo, *, wait_s: float = WAIT_S) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._broker = broker
        self._info = info
        self._settled = threading.Event()
        caller = Caller(broker, make_settings())
        self._reply = self._pool.submit(caller.call, "work", queue=QUEUE, info=info, payload=b"{}", wait_s=wait_s)

    def result(self, *, is_over: bool = False) -> CallReply:
        """Wait for the answer, or end the caller's wait."""
        if is_over:
            give_up(self._broker, self._info)
        try:
            return self._reply.result(timeout=90)
        finally:
            self._pool.submit(base.close).result()
            self._pool.submit(self._broker.link.close).result()
            self._pool.shutdown()


def state(info: CallInfo) -> str | None:
    row = one("SELECT state FROM calls WHERE call_id = %s", (info.call_id,))
    return row[0] if row else None


def test_a_call_of_a_worker_killed_before_its_commit_is_busy_without_effect(
    broker: SluiceBroker, start: Callable[..., WorkerProcess]
) -> None:
    info = call_info("key")
    worker = start("before_commit")
    waiting = Waiting(broker, info)
    worker.wait_for("before_commit")
    worker.signal(signal.SIGKILL)

    with pytest.raises(GatewayBusy):
        waiting.result(is_over=True)
    assert effects() == 0
    assert state(info) == "abandoned"


def test_a_retry_after_a_killed_worker_takes_effect_once(
    broker: SluiceBroker, start: Callable[..., WorkerProcess]
) -> None:
    worker = start("before_commit")
    waiting = Waiting(broker, call_info("key"))
    worker.wait_for("before_commit")
    worker.signal(signal.SIGKILL)
    with pytest.raises(GatewayBusy):
        waiting.result(is_over=True)

    declare_call(broker, take_effect)
    with working(broker):
        retried = Waiting(broker, call_info("key")).result()
    assert retried == CallReply(body=FIRST)
    assert effects() == 1


def test_a_call_of_a_worker_killed_after_its_commit_is_answered(
    broker: SluiceBroker, start: Callable[..., WorkerProcess]
) -> None:
    info = call_info("key")
    worker = start("after_commit")
    waiting = Waiting(broker, info)
    worker.wait_for("after_commit")
    worker.signal(signal.SIGKILL)

    assert waiting.result(is_over=True).body == FIRST
    assert effects() == 1


def test_a_killed_workers_committed_call_is_not_done_again_when_redelivered(
    broker: SluiceBroker, redis_url: str, start: Callable[..., WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.queue.consumer.MAINTENANCE_S", 0.1)
    worker = start("after_commit")
    waiting = Waiting(broker, call_info("key"))
    worker.wait_for("after_commit")
    worker.signal(signal.SIGKILL)
    assert waiting.result(is_over=True).body == FIRST

    impatient = make_broker(redis_url, heartbeat_timeout_ms=300)
    declare_call(impatient, take_effect)
    with working(impatient):
        eventually(lambda: impatient.dispatch("qsize", QUEUE) == 0)
        time.sleep(0.3)
    impatient.link.close()
    assert effects() == 1


@pytest.mark.parametrize("point", ["before_begin", "before_commit"])
def test_a_worker_stopped_before_its_commit_until_after_the_wait_has_no_effect(
    broker: SluiceBroker, start: Callable[..., WorkerProcess], point: str
) -> None:
    """The server ends an open transaction, and with it the lock that the tombstone waits for."""
    info = call_info("key")
    worker = start(point)
    waiting = Waiting(broker, info)
    worker.wait_for(point)
    worker.signal(signal.SIGSTOP)
    with pytest.raises(GatewayBusy):
        waiting.result(is_over=True)

    worker.go_on()
    worker.signal(signal.SIGCONT)
    eventually(lambda: broker.dispatch("qsize", QUEUE) == 0)
    assert effects() == 0
    assert state(info) == "abandoned"


def test_a_call_of_a_worker_stopped_after_its_commit_is_answered(
    broker: SluiceBroker, start: Callable[..., WorkerProcess]
) -> None:
    worker = start("after_commit")
    waiting = Waiting(broker, call_info("key"))
    worker.wait_for("after_commit")
    worker.signal(signal.SIGSTOP)

    assert waiting.result(is_over=True).body == FIRST
    worker.go_on()
    worker.signal(signal.SIGCONT)
    eventually(lambda: broker.dispatch("qsize", QUEUE) == 0)
    assert effects() == 1


@pytest.mark.parametrize(
    ("point", "taken"), [("before_statement", 0), ("after_statement", GATHER_MAX), ("before_answers", GATHER_MAX)]
)
def test_a_worker_killed_in_a_gathering_commits_all_or_none_and_every_caller_knows(
    broker: SluiceBroker,
    redis_url: str,
    start: Callable[..., WorkerProcess],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    taken: int,
) -> None:
    monkeypatch.setattr("actors.queue.consumer.MAINTENANCE_S", 0.1)
    infos = [call_info(f"key-{number}") for number in range(GATHER_MAX)]
    waiting = [Waiting(broker, info) for info in infos]
    eventually(lambda: broker.backlog(QUEUE).waiting == GATHER_MAX)
    start(point, until=point).signal(signal.SIGKILL)

    busy = 0
    for each in waiting:
        try:
            assert each.result(is_over=True).body == b'"{}"'
        except GatewayBusy:
            busy += 1
    assert (GATHER_MAX - busy, effects()) == (taken, taken)

    # Another worker gets the killed one's calls, and the callers' outcomes stay true.
    impatient = make_broker(redis_url, heartbeat_timeout_ms=300)
    declare_call(impatient, take_effect, together=take_effect_together)
    with working(impatient):
        eventually(lambda: impatient.dispatch("qsize", QUEUE) == 0)
    impatient.link.close()
    assert {state(info) for info in infos} == {"done" if taken else "abandoned"}
    assert effects() == taken

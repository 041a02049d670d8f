from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import structlog.testing

from actors.queue.broker import SluiceBroker
from actors.queue.link import LinkDownError
from actors.queue.schedule import rings
from devstack.servers.valkey import Valkey
from scheduler import __main__
from scheduler.__main__ import FREQUENT_S, Ringer, make_scheduler, phase_s
from scheduler.jobs import jobs
from tests.actors.queue.workers import NAMESPACE, eventually, make_broker, make_settings

pytestmark = pytest.mark.fresh_database
ROOT: Final = Path(__file__).parents[2]
# No free port is needed: nothing listens on this one.
NOWHERE: Final = "redis://127.0.0.1:1/0"
PAUSE_S: Final = 2.5


@pytest.fixture
def broker(redis_url: str) -> Iterator[SluiceBroker]:
    made = make_broker(redis_url)
    yield made
    made.link.close()


class Process:
    def __init__(self, redis_url: str) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "ENVIRONMENT": "development",
            "DATABASE_URL": "postgresql://127.0.0.1:1/none",
            "REDIS_URL": redis_url,
            "REDIS_NAMESPACE": NAMESPACE,
            "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scheduler"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
        )

    def wait_for(self, text: str) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if text in line:
                return
        raise AssertionError(f"the scheduler ended before {text!r}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Stop the scheduler; return its exit code and the seconds it took."""
        started = time.monotonic()
        self._process.send_signal(number)
        _, _errors = self._process.communicate(timeout=60)
        return self._process.returncode, time.monotonic() - started

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def rung(broker: SluiceBroker, queue: str) -> int:
    return broker.backlog(queue).waiting


def test_every_job_is_notified_soon_after_the_start(broker: SluiceBroker, redis_url: str) -> None:
    process = Process(redis_url)
    try:
        settings = make_settings(polygon_rpc_urls="")
        expected = Counter(ring.doorbell.queue for ring in rings(settings))
        eventually(lambda: {queue: rung(broker, queue) for queue in expected} == expected)
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_scheduler_at_once(redis_url: str, number: signal.Signals) -> None:
    process = Process(redis_url)
    try:
        process.wait_for("scheduler.starting")
        time.sleep(0.5)
        code, took_s = process.stop(number)
    finally:
        process.kill()

    assert code == 0
    assert took_s < 30


def test_without_redis_the_scheduler_reports_it_and_ends_quickly() -> None:
    process = Process(NOWHERE)
    try:
        process.wait_for("store.away")
        code, took_s = process.stop()
    finally:
        process.kill()

    assert code == 0
    assert took_s < 30


def test_two_schedulers_notify_once(broker: SluiceBroker, redis_url: str) -> None:
    processes = [Process(redis_url), Process(redis_url)]
    try:
        bells = sum(ring.doorbell.queue == "maintenance" for ring in rings(make_settings()))
        eventually(lambda: rung(broker, "maintenance") == bells)
        time.sleep(1)
        assert rung(broker, "maintenance") == bells
    finally:
        for process in processes:
            process.kill()


def test_the_scheduler_notifies_again_after_an_outage_of_redis(
    broker: SluiceBroker, redis_url: str, valkey: Valkey
) -> None:
    process = Process(redis_url)
    try:
        eventually(lambda: rung(broker, "webhooks") == 1)
        valkey.stop()
        process.wait_for("store.away")
        valkey.start()
        broker.link.close()
        eventually(lambda: rung(broker, "webhooks") == 1)
    finally:
        process.kill()


def test_an_outage_is_reported_once() -> None:
    ringer = Ringer(make_broker(NOWHERE))
    job = jobs(make_settings())[0]

    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            ringer.ring(job)

    assert [line["event"] for line in lines] == ["scheduler.redis_away"]


def test_each_outage_is_reported(broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    ringer, job = Ringer(broker), jobs(make_settings())[0]
    ring = broker.ring

    def cut(*_: str) -> bool:
        raise LinkDownError("cut")

    with structlog.testing.capture_logs() as lines:
        for outcome in (cut, ring, cut):
            monkeypatch.setattr(broker, "ring", outcome)
            ringer.ring(job)

    assert len(lines) == 2


def test_a_silent_redis_is_asked_once_and_not_for_every_job(
    broker: SluiceBroker, valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ring = broker.ring
    monkeypatch.setattr(broker, "ring", lambda *bell: (asked.append(":".join(bell)), ring(*bell)))
    monkeypatch.setattr(broker.link, "_reply_timeout_s", __main__.SILENT_S)
    ringer, (first, *others) = Ringer(broker), jobs(make_settings())
    ringer.ring(first)
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        for job in (first, *others):
            ringer.ring(job)
    finally:
        os.kill(valkey.pid, signal.SIGCONT)
    assert asked == [first.name, first.name]

    monkeypatch.setattr(ringer, "_quiet_until", 0.0)
    ringer.ring(others[0])
    assert asked[-1] == others[0].name


def test_notifications_missed_during_a_pause_are_sent_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    counts: dict[str, int] = {}

    class Counting(Ringer):
        def __init__(self) -> None: ...

        def ring(self, job: object) -> None:
            name = job.name  # type: ignore[attr-defined]
            counts[name] = counts.get(name, 0) + 1

    scheduler = make_scheduler(make_settings(tick_interval_ms=50), Counting())
    running = threading.Thread(target=scheduler.start, kwargs={"paused": True})
    running.start()
    time.sleep(PAUSE_S)
    scheduler.resume()
    time.sleep(0.2)
    scheduler.shutdown(wait=True)
    running.join()

    assert {name: count for name, count in counts.items() if not name.startswith("poll_")} == {
        job.name: 1
        for number, job in enumerate(jobs(make_settings()))
        if job.actor != "poll_network"
        and job.trigger.interval_length + phase_s(number, job.trigger.interval_length) < PAUSE_S
    }


def test_jobs_with_longer_intervals_are_spread_between_those_of_every_second() -> None:
    every_job = jobs(make_settings())
    phases = {job.name: phase_s(number, job.trigger.interval_length) for number, job in enumerate(every_job)}
    rare = {job.name: job.trigger.interval_length for job in every_job if job.trigger.interval_length > FREQUENT_S}

    assert {phases[job.name] for job in every_job if job.name not in rare} == {0.0}
    assert all(phases[name] % FREQUENT_S == FREQUENT_S / 4 and phases[name] < every_s for name, every_s in rare.items())
    minutely = [phases[name] for name, every_s in rare.items() if every_s == 60]
    assert len(set(minutely)) == len(minutely)

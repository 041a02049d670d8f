"""Workers and schedulers report that they run; a silent one no longer counts."""

from __future__ import annotations

import pytest

from actors.queue import delayed
from actors.queue.broker import HEARTBEAT_TIMEOUT_MS, SluiceBroker
from actors.queue.delayed import BEAT_S
from actors.queue.heartbeats import EVERY_S, NEW_S, SILENCE_MAX_S, Heartbeats
from actors.queue.link import LinkDownError
from scheduler.__main__ import Ringer
from scheduler.jobs import jobs
from tests.actors.queue.workers import NAMESPACE, QUEUE, declare, eventually, make_broker, make_settings, working


def test_a_worker_serves_its_queues_from_its_start_to_its_end(broker: SluiceBroker, redis_url: str) -> None:
    declare(broker, lambda: None)
    watcher = make_broker(redis_url).heartbeats
    assert watcher.consumers(QUEUE) == 0

    with working(broker):
        eventually(lambda: watcher.consumers(QUEUE) == 1)
        assert watcher.consumers("payouts") == 0
    assert watcher.consumers(QUEUE) == 0


def test_silent_processes_do_not_count(broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.link.run(broker.heartbeats.serving(QUEUE, "dead"))
    broker.heartbeats.tick()
    assert broker.heartbeats.consumers(QUEUE) == 1
    age_s = broker.heartbeats.tick_age_s()
    assert age_s is not None
    assert age_s < 30

    now_ms = broker.link.now_ms()
    monkeypatch.setattr(broker.link, "now_ms", lambda: now_ms + int(SILENCE_MAX_S * 1000) + 1000)

    assert broker.heartbeats.consumers(QUEUE) == 0
    age_s = broker.heartbeats.tick_age_s()
    assert age_s is not None
    assert age_s > SILENCE_MAX_S


def test_heartbeats_come_well_before_a_process_counts_as_gone() -> None:
    assert BEAT_S < SILENCE_MAX_S / 2
    assert BEAT_S * 1000 < HEARTBEAT_TIMEOUT_MS / 2
    assert EVERY_S < SILENCE_MAX_S / 2


def test_heartbeats_return_after_a_flush(broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed, "BEAT_S", 0.02)
    declare(broker, lambda: None)
    with working(broker):
        eventually(lambda: broker.heartbeats.consumers(QUEUE) == 1)
        broker.link.run([("FLUSHALL",)])
        eventually(lambda: broker.heartbeats.consumers(QUEUE) == 1)


def test_a_scheduler_reports_a_tick_only_when_its_notifications_are_sent(
    broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job, *_) = jobs(make_settings())

    def fail(*_args: str) -> bool:
        raise LinkDownError("away")

    with monkeypatch.context() as patch:
        patch.setattr(broker, "ring", fail)
        Ringer(broker).ring(job)
    assert broker.heartbeats.tick_age_s() is None

    Ringer(broker).ring(job)
    age_s = broker.heartbeats.tick_age_s()
    assert age_s is not None
    assert age_s < 30


def test_without_redis_the_count_raises() -> None:
    with pytest.raises(LinkDownError):
        Heartbeats(make_broker("redis://127.0.0.1:1/0").link, NAMESPACE).consumers(QUEUE)


def test_after_a_flush_nothing_is_known_for_some_seconds(broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.link.run([("FLUSHALL",)])
    assert broker.heartbeats.is_new()
    broker.link.run(broker.heartbeats.serving(QUEUE, "process"))
    assert broker.heartbeats.is_new(), "a first report does not make the others absent"

    now_ms = broker.link.now_ms()
    monkeypatch.setattr(broker.link, "now_ms", lambda: now_ms + int(NEW_S * 1000) + 1000)
    assert not broker.heartbeats.is_new()

    broker.link.run([("FLUSHALL",)])
    broker.link.run(broker.heartbeats.serving(QUEUE, "process"))
    assert broker.heartbeats.is_new()
    assert NEW_S >= 2 * BEAT_S, "every process reports within that time"


def test_processes_report_the_connections_that_they_may_open(
    broker: SluiceBroker, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, web = make_broker(redis_url).heartbeats, make_broker(redis_url).heartbeats
    reader.note_connections()
    assert reader.connections() == 0

    broker.heartbeats.connections_max, web.connections_max = 6, 33
    broker.link.run([*broker.heartbeats.serving(QUEUE, "p"), *broker.heartbeats.serving("other", "p")])
    web.note_connections()
    assert reader.connections() == 39, "a process counts once, however many queues it serves"

    now_ms = reader._link.now_ms()
    monkeypatch.setattr(reader._link, "now_ms", lambda: now_ms + int(SILENCE_MAX_S * 1000) + 1000)
    assert reader.connections() == 0

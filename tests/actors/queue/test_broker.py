from __future__ import annotations

import threading
import time
from typing import Any

import dramatiq
import pytest
import redis
import time_machine
from dramatiq import Message, Worker
from dramatiq.brokers.redis import RedisBroker
from structlog.contextvars import get_contextvars

from actors.queue import consumer, delayed
from actors.queue.broker import SluiceBroker
from actors.queue.link import LinkDownError
from devstack.servers.valkey import Valkey
from models.db import base
from tests.actors.queue.workers import NAMESPACE, QUEUE, declare, eventually, make_broker, working

QUEUE_KEY = f"{NAMESPACE}:{QUEUE}"


@pytest.fixture
def seen(broker: SluiceBroker) -> list[object]:
    """Return the arguments that the actor `work` got."""
    given: list[object] = []
    declare(broker, given.append)
    return given


def message(*args: object, actor: str = "work", queue: str = QUEUE, **options: object) -> Message[None]:
    return Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options=dict(options))


def dead_letters(server: redis.Redis) -> int:
    return int(server.zcard(f"{QUEUE_KEY}.XQ"))


def unsettled(server: redis.Redis, queue: str = QUEUE) -> list[bytes]:
    return list(server.keys(f"{NAMESPACE}:__acks__.*.{queue}"))


def put_raw(server: redis.Redis, data: bytes, redis_id: str = "raw") -> None:
    server.hset(f"{QUEUE_KEY}.msgs", redis_id, data)
    server.rpush(QUEUE_KEY, redis_id)


@pytest.fixture
def no_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a queue's failed thread from being restarted: dramatiq would do so after three seconds."""
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 120)


# Plain work ---------------------------------------------------------------------------------------------------------


def test_a_message_is_worked_on_and_leaves_nothing_in_redis(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    with working(broker):
        broker.enqueue(message("a"))
        eventually(lambda: broker.do_qsize(QUEUE) == 0 and seen)

    assert seen == ["a"]
    reports = {f"{NAMESPACE}:__heartbeats__", f"{NAMESPACE}:heartbeats:~began"}
    assert {key.decode() for key in server.keys("*")} <= reports


def test_an_idle_worker_takes_a_message_at_once(
    broker: SluiceBroker, seen: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message arrives with the fetch that was waiting when it was sent, and ends that wait."""
    fetch, brought = broker.fetch, [(0.0, 0.0)]

    def noted(queue_name: str, count: int, wait_s: float, *, maintain: bool) -> list[bytes | None]:
        started_at = time.monotonic()
        answer = fetch(queue_name, count, wait_s, maintain=maintain)
        if answer:
            brought.append((started_at, started_at + wait_s - time.monotonic()))
        return answer

    def waited_for() -> bool:
        # A wait may just have ended when the message is sent, but not twice in a row.
        time.sleep(0.3)
        sent_at, before = time.monotonic(), len(seen)
        broker.enqueue(message("a"))
        eventually(lambda: len(seen) > before)
        started_at, left_s = brought[-1]
        return started_at < sent_at - 0.1 and left_s > 0.05

    monkeypatch.setattr(broker, "fetch", noted)
    with working(broker, timeout_ms=1_000):
        eventually(waited_for, limit_s=30)


def test_messages_are_worked_on_in_order(broker: SluiceBroker, seen: list[object]) -> None:
    for number in range(20):
        broker.enqueue(message(number))
    with working(broker, threads=1):
        eventually(lambda: len(seen) == 20)

    assert seen == list(range(20))


def test_a_worker_fetches_no_more_messages_than_it_has_threads(broker: SluiceBroker, server: redis.Redis) -> None:
    done = threading.Event()
    declare(broker, lambda: done.wait(60) and None, queue="chain")
    for _ in range(10):
        broker.enqueue(message(queue="chain"))
    with working(broker, threads=2):
        eventually(lambda: server.llen(f"{NAMESPACE}:chain") == 8)
        time.sleep(0.2)
        waiting = server.llen(f"{NAMESPACE}:chain")
        done.set()
        eventually(lambda: broker.do_qsize("chain") == 0)

    assert waiting == 8


def test_messages_of_a_stock_dramatiq_producer_are_read(
    broker: SluiceBroker, redis_url: str, seen: list[object]
) -> None:
    stock = RedisBroker(url=redis_url, namespace=NAMESPACE)
    stock.enqueue(message("stock"))
    stock.client.close()

    with working(broker):
        eventually(lambda: seen == ["stock"])


def test_a_stock_dramatiq_worker_reads_our_messages(broker: SluiceBroker, redis_url: str) -> None:
    stock = RedisBroker(url=redis_url, namespace=NAMESPACE, middleware=[])
    given: list[object] = []
    dramatiq.actor(actor_name="work", queue_name=QUEUE, broker=stock)(given.append)
    broker.enqueue(message("ours"))

    with working(stock):
        eventually(lambda: given == ["ours"])
    stock.client.close()


def test_the_backlog_has_a_number_and_an_age(broker: SluiceBroker) -> None:
    assert (broker.backlog(QUEUE).waiting, broker.backlog(QUEUE).oldest_ms) == (0, 0)
    # By the broker's own clock, as calls and notifications are; a query of Redis lags behind it by the reply's way
    # back.
    broker.enqueue(message("a").copy(message_timestamp=broker.link.now_ms()))
    broker.enqueue(message("b"))
    time.sleep(0.05)

    backlog = broker.backlog(QUEUE)

    assert backlog.waiting == 2
    assert 50 <= backlog.oldest_ms < 5_000


# Failing actors and bad messages ------------------------------------------------------------------------------------


def test_an_exception_in_an_actor_loses_only_its_message(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    def fail() -> None:
        raise ValueError("as planned")

    declare(broker, fail, name="fail")
    with working(broker, threads=1):
        broker.enqueue(message(actor="fail"))
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)

    assert not unsettled(server)
    assert dead_letters(server) == 0


def test_a_rejected_message_becomes_a_dead_letter(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    class Reject(dramatiq.Middleware):
        def before_process_message(self, broker: object, message: dramatiq.broker.MessageProxy) -> None:  # noqa: ARG002
            message.fail()

    broker.add_middleware(Reject())
    with working(broker):
        broker.enqueue(message("a"))
        eventually(lambda: dead_letters(server) == 1)

    assert seen == []
    assert not unsettled(server)
    assert broker.do_qsize(QUEUE) == 0


def test_arguments_unknown_to_an_actor_lose_only_their_message(broker: SluiceBroker, seen: list[object]) -> None:
    with working(broker, threads=1):
        broker.enqueue(message("too", "many"))
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)


def test_an_unknown_actors_message_is_passed_on_until_a_newer_version_takes_it(
    broker: SluiceBroker, redis_url: str, seen: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "PASS_ON_DELAY_MS", 50)
    newer = make_broker(redis_url)
    given: list[object] = []
    declare(newer, given.append, name="brand_new")
    with working(broker):
        broker.enqueue(message("a", actor="brand_new"))
        time.sleep(0.3)
        with working(newer):
            eventually(lambda: given == ["a"])
            eventually(lambda: broker.do_qsize(QUEUE) == 0)

    assert seen == []


def test_a_message_that_no_version_takes_becomes_a_dead_letter(
    broker: SluiceBroker, server: redis.Redis, seen: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "PASS_ON_DELAY_MS", 10)
    monkeypatch.setattr(consumer, "PASS_ON_TIMES", 2)
    with working(broker):
        broker.enqueue(message(actor="nobody"))
        eventually(lambda: dead_letters(server) == 1)
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe not text",
        b"not json",
        b"[]",
        b"{}",
        b"[" * 200_000,
        message("x", redis_message_id=7).encode(),
        message("x").encode(),
        message("x", queue="elsewhere", redis_message_id="raw").encode(),
        message("x", redis_message_id="raw").encode().replace(b'"args":["x"]', b'"args":7'),
        message("x", redis_message_id="raw").encode().replace(b'"kwargs":{}', b'"kwargs":[]'),
        message("x", redis_message_id="raw").encode().replace(b'"x"', b'"\\ud800"'),
        message("x", redis_message_id="raw").encode().replace(b'"x"', b"NaN"),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_a_malformed_message_becomes_a_dead_letter_and_work_continues(
    broker: SluiceBroker, server: redis.Redis, seen: list[object], data: bytes
) -> None:
    put_raw(server, data)
    with working(broker):
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)

    assert dead_letters(server) == (1 if data else 0)
    assert not unsettled(server)


def test_a_message_whose_text_was_flushed_is_dropped(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    server.rpush(QUEUE_KEY, "without-text")
    with working(broker):
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)

    assert not unsettled(server)


def test_fields_of_a_newer_version_are_ignored(broker: SluiceBroker, server: redis.Redis, seen: list[object]) -> None:
    put_raw(server, message("a", redis_message_id="raw").encode().replace(b"{", b'{"priority":9,', 1))
    with working(broker):
        eventually(lambda: seen == ["a"])


def test_a_message_delivered_twice_runs_twice(broker: SluiceBroker, server: redis.Redis, seen: list[object]) -> None:
    """The queue promises no more: every actor is safe to run twice."""
    data = message("a", redis_message_id="raw").encode()
    gate = threading.Event()
    declare(broker, lambda: gate.wait(60) and None, name="hold")
    with working(broker, threads=1):
        broker.enqueue(message(actor="hold"))
        put_raw(server, data)
        put_raw(server, data)
        gate.set()
        eventually(lambda: seen and broker.do_qsize(QUEUE) == 0)

    assert set(seen) == {"a"}


# Delays -------------------------------------------------------------------------------------------------------------


def test_a_delayed_message_runs_when_it_is_due(broker: SluiceBroker) -> None:
    came_at: list[float] = []
    declare(broker, lambda: came_at.append(time.time()), name="clock")
    with working(broker):
        sent_at = time.time()
        broker.enqueue(message(actor="clock"), delay=300)
        eventually(lambda: came_at)
        eventually(lambda: broker.do_qsize(QUEUE) == 0)

    # The queue counts in whole milliseconds.
    assert came_at[0] >= sent_at + 0.299


@pytest.mark.usefixtures("seen")
def test_a_consumer_with_a_delayed_message_checks_it_soon(broker: SluiceBroker) -> None:
    waits = broker.consume(f"{QUEUE}.DQ", prefetch=10, timeout=6_000)
    broker.enqueue(message("later"), delay=600_000)
    held_message = next(waits)
    began = time.monotonic()

    assert next(waits) is None

    assert held_message is not None
    assert time.monotonic() - began < 2 * delayed.DELAYED_LOOK_S
    waits.close()


def test_delayed_messages_are_returned_at_shutdown(
    broker: SluiceBroker, redis_url: str, server: redis.Redis, seen: list[object]
) -> None:
    broker.enqueue(message("later"), delay=600_000)
    with working(broker):
        eventually(lambda: unsettled(server, f"{QUEUE}.DQ"))
    assert seen == []
    assert not unsettled(server, f"{QUEUE}.DQ")
    other = make_broker(redis_url)
    given: list[object] = []
    declare(other, given.append)

    with time_machine.travel(time.time() + 3_600, tick=True), working(other):
        eventually(lambda: given == ["later"])


def test_a_delayed_message_survives_an_outage_at_the_moment_it_is_due(
    broker: SluiceBroker, seen: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """dramatiq loses a consumer's delayed messages when the queue fails it; this broker takes them back from Redis."""
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.05)
    enqueue, failed = broker.do_enqueue, threading.Event()

    def fail_once(queue_name: str, redis_id: str, data: bytes) -> None:
        if queue_name == QUEUE and not failed.is_set():
            failed.set()
            raise LinkDownError("cut")
        enqueue(queue_name, redis_id, data)

    monkeypatch.setattr(broker, "do_enqueue", fail_once)
    with working(broker):
        broker.enqueue(message("later"), delay=50)
        eventually(lambda: seen == ["later"])
        eventually(lambda: broker.do_qsize(QUEUE) == 0)

    assert failed.is_set()


# Shutdown -----------------------------------------------------------------------------------------------------------


def test_fetched_messages_that_were_not_begun_are_returned_at_shutdown(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        gate.wait(60)

    declare(broker, hold, name="hold")
    broker.enqueue(message(actor="hold"))
    for number in range(6):
        broker.enqueue(message(number))
    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    assert begun.wait(60)
    stopping = threading.Thread(target=worker.stop, args=(5_000,))
    stopping.start()
    time.sleep(0.2)
    gate.set()
    stopping.join()

    assert seen == []
    assert not unsettled(server)
    assert server.llen(QUEUE_KEY) == 6
    assert server.hlen(f"{QUEUE_KEY}.msgs") == 6


def test_messages_that_a_consumer_did_not_hand_out_are_returned(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    for number in range(3):
        broker.enqueue(message(number))
    consumer_ = broker.consume(QUEUE, prefetch=3, timeout=50)
    first = next(consumer_)
    assert first is not None

    consumer_.requeue([first])
    consumer_.close()

    assert not unsettled(server)
    assert server.llen(QUEUE_KEY) == 3
    assert seen == []


@pytest.mark.usefixtures("no_restart")
def test_shutdown_does_not_wait_for_redis(broker: SluiceBroker, valkey: Valkey, seen: list[object]) -> None:
    worker = Worker(broker, worker_threads=1, worker_timeout=50)
    worker.start()
    try:
        valkey.stop()
        time.sleep(0.2)
        started = time.monotonic()
        worker.stop(timeout=60_000)
        assert time.monotonic() - started < 30
    finally:
        valkey.start()
    assert seen == []


# Redis away, restarted, flushed, refusing -------------------------------------------------------------------------


@pytest.mark.usefixtures("no_restart")
def test_work_continues_after_redis_restarted_empty(broker: SluiceBroker, valkey: Valkey, seen: list[object]) -> None:
    with working(broker):
        broker.enqueue(message("before"))
        eventually(lambda: seen == ["before"])
        valkey.stop()
        time.sleep(0.5)
        valkey.start()
        eventually(lambda: _enqueued(broker, message("after")))
        eventually(lambda: seen == ["before", "after"])


def _enqueued(broker: SluiceBroker, sent: Message[None]) -> bool:
    try:
        broker.enqueue(sent)
    except LinkDownError:
        return False
    return True


@pytest.mark.parametrize("settled", ["ack", "nack"])
def test_messages_acknowledged_while_redis_was_away_are_acknowledged_later(
    broker: SluiceBroker, server: redis.Redis, seen: list[object], monkeypatch: pytest.MonkeyPatch, settled: str
) -> None:
    """The worker continues at once: dramatiq would block its thread until Redis answers."""
    settle, cuts = broker.settle, [1]

    def cut_once(command: str, queue_name: str, redis_id: str) -> None:
        if cuts:
            cuts.pop()
            raise LinkDownError("cut")
        settle(command, queue_name, redis_id)

    monkeypatch.setattr("dramatiq.worker.POST_PROCESS_MESSAGE_RETRY_DELAY_SECS", 120)
    monkeypatch.setattr(broker, "settle", cut_once)
    monkeypatch.setattr(consumer, "PASS_ON_TIMES", 0)
    with working(broker, threads=1):
        broker.enqueue(message("first", actor="work" if settled == "ack" else "nobody"))
        eventually(lambda: not cuts)
        broker.enqueue(message("after"))
        eventually(lambda: "after" in seen)
        eventually(lambda: broker.do_qsize(QUEUE) == 0)

    assert not unsettled(server)
    assert dead_letters(server) == (1 if settled == "nack" else 0)


def test_a_worker_whose_threads_are_all_busy_does_not_query_redis(
    broker: SluiceBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, fetches = threading.Event(), [0]
    fetch = broker.fetch

    def counted(queue_name: str, count: int, wait_s: float, *, maintain: bool) -> list[bytes | None]:
        fetches[0] += queue_name == "chain"
        return fetch(queue_name, count, wait_s, maintain=maintain)

    monkeypatch.setattr(broker, "fetch", counted)
    declare(broker, lambda: gate.wait(60) and None, queue="chain")
    for _ in range(3):
        broker.enqueue(message(queue="chain"))
    with working(broker, threads=1):
        eventually(lambda: broker.backlog("chain").waiting == 2)
        before = fetches[0]
        time.sleep(0.3)
        during = fetches[0] - before
        gate.set()
        eventually(lambda: broker.do_qsize("chain") == 0)

    assert during <= 1


@pytest.mark.usefixtures("no_restart")
@pytest.mark.parametrize("forget", ["flushall", "script_flush"])
def test_work_continues_after_a_flush(
    broker: SluiceBroker, server: redis.Redis, seen: list[object], forget: str
) -> None:
    with working(broker):
        broker.enqueue(message("before"))
        eventually(lambda: seen == ["before"])
        getattr(server, forget)()
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["before", "after"])
        eventually(lambda: broker.do_qsize(QUEUE) == 0)


def test_a_flush_while_an_actor_works_does_no_harm(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        gate.wait(60)

    declare(broker, hold, name="hold")
    with working(broker, threads=1):
        broker.enqueue(message(actor="hold"))
        assert begun.wait(60)
        server.flushall()
        gate.set()
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"] and broker.do_qsize(QUEUE) == 0)


@pytest.mark.usefixtures("no_restart")
def test_work_continues_after_redis_was_read_only(
    broker: SluiceBroker, server: redis.Redis, seen: list[object]
) -> None:
    with working(broker):
        server.replicaof("127.0.0.1", 1)
        try:
            with pytest.raises(LinkDownError, match="ReadOnly"):
                broker.enqueue(message("refused"))
            time.sleep(0.2)
        finally:
            server.replicaof("NO", "ONE")
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"])


@pytest.mark.usefixtures("no_restart")
def test_work_continues_after_redis_was_full(broker: SluiceBroker, server: redis.Redis, seen: list[object]) -> None:
    with working(broker):
        server.config_set("maxmemory", 1)
        try:
            with pytest.raises(LinkDownError, match="OutOfMemory"):
                broker.enqueue(message("refused"))
            time.sleep(0.2)
        finally:
            server.config_set("maxmemory", 0)
        broker.enqueue(message("after"))
        eventually(lambda: seen == ["after"])


# Dead workers -------------------------------------------------------------------------------------------------------


def _fetch_and_die(redis_url: str, timeout_ms: int) -> None:
    """Take a message and fall silent."""
    dead = make_broker(redis_url, heartbeat_timeout_ms=timeout_ms)
    assert next(dead.consume(QUEUE, prefetch=1, timeout=50)) is not None
    dead.link.close()


def test_a_dead_workers_messages_are_taken_back_within_seconds(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "MAINTENANCE_S", 0.2)
    given: list[object] = []
    patient, impatient = (make_broker(redis_url, heartbeat_timeout_ms=timeout_ms) for timeout_ms in (600_000, 500))
    for broker in (patient, impatient):
        declare(broker, given.append)
    patient.enqueue(message("a"))
    _fetch_and_die(redis_url, 500)
    with working(patient):
        time.sleep(0.5)
    assert given == [], "the worker did not count as dead"

    with working(impatient):
        eventually(lambda: given == ["a"])
    for broker in (patient, impatient):
        broker.link.close()


def test_a_worker_whose_clock_runs_ahead_takes_no_messages_of_live_ones(
    redis_url: str, server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "MAINTENANCE_S", 0.0)
    honest = make_broker(redis_url)
    honest.enqueue(message("a"))
    assert next(honest.consume(QUEUE, prefetch=1, timeout=50)) is not None
    skewed = make_broker(redis_url)
    with time_machine.travel(time.time() + 3_600, tick=True):
        assert next(skewed.consume(QUEUE, prefetch=1, timeout=50)) is None
    assert next(skewed.consume(QUEUE, prefetch=1, timeout=50)) is None
    assert len(unsettled(server)) == 1
    for made in (honest, skewed):
        made.link.close()


# Threads ------------------------------------------------------------------------------------------------------------


def test_a_stopped_worker_leaves_no_connection(broker: SluiceBroker, server: redis.Redis, seen: list[object]) -> None:
    before = len(server.client_list())
    with working(broker, threads=3):
        broker.enqueue(message("a"))
        eventually(lambda: seen)
        assert len(server.client_list()) > before

    eventually(lambda: len(server.client_list()) <= before)


@pytest.mark.usefixtures("database")
def test_a_thread_returns_its_connection_to_postgresql(broker: SluiceBroker) -> None:
    base.close()
    backends: list[int] = []
    declare(broker, lambda: backends.append(base.value("SELECT pg_backend_pid()")))
    with working(broker, threads=1):
        broker.enqueue(message())
        eventually(lambda: broker.do_qsize(QUEUE) == 0)
        assert [base.value("SELECT pg_backend_pid()")] == backends


def test_log_lines_of_an_actor_carry_its_name_and_request(broker: SluiceBroker) -> None:
    bound: list[dict[str, Any]] = []
    declare(broker, lambda **_: bound.append(get_contextvars()))
    sent = message()
    with working(broker, threads=1):
        broker.enqueue(sent.copy(kwargs={"request_id": "r-1"}))
        broker.enqueue(sent)
        eventually(lambda: len(bound) == 2)

    assert bound == [{"actor": "work", "request_id": "r-1"}, {"actor": "work"}]

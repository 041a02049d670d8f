from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import msgspec
import psycopg2
import pytest
import redis

from actors.queue import call_actors
from actors.queue import caller as queue_caller
from actors.queue.broker import SluiceBroker
from actors.queue.call_specs import CallSpec
from actors.queue.caller import Caller, CallInfo, CallReply, recorded
from actors.queue.link import LinkDownError
from actors.queue.messages import STAMP, Answer
from actors.queue.registry import REGISTRY
from actors.queue.wire import encode
from core.errors import (
    DomainError,
    GatewayBusy,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    IdempotencyUnavailable,
    PaymentBadAmount,
    TooManyRequestsError,
)
from devstack.servers.valkey import Valkey
from models.db import base
from models.db.base import execute, one
from models.queue import calls as queue_calls
from tests.actors.queue.workers import (
    NAMESPACE,
    QUEUE,
    call_info,
    declare_call,
    effects,
    eventually,
    give_up,
    make_settings,
    take_effect,
    take_effect_and_refuse,
    working,
)
from tests.models.queue.builders import MERCHANT

pytestmark = pytest.mark.usefixtures("effects_table")

WAIT_S: Final = 0.4
FIRST: Final = b'{"number":1}'


@pytest.fixture
def caller(broker: SluiceBroker, redis_url: str) -> Caller:
    return Caller(broker, make_settings(redis_url, call_wait_s=25, call_slots=12))


def ask(caller: Caller, info: CallInfo | None = None, *, wait_s: float | None = None) -> CallReply:
    return caller.call("work", queue=QUEUE, info=info or call_info(), payload=b"{}", wait_s=wait_s)


def state(info: CallInfo) -> str | None:
    row = one("SELECT state FROM calls WHERE call_id = %s", (info.call_id,))
    return row[0] if row else None


def send_again(broker: SluiceBroker, info: CallInfo, *, wait_s: float = 60.0) -> None:
    """Deliver a call's message again."""
    now_ms = broker.link.now_ms()
    message = queue_caller._envelope("work", QUEUE, info, b"{}", now_ms=now_ms, wait_s=wait_s, stamps=broker.stamps)
    broker.do_enqueue(QUEUE, message.message_id, encode(message))


def worked_off(broker: SluiceBroker) -> bool:
    return bool(broker.do_qsize(QUEUE) == 0)


# Answers ------------------------------------------------------------------------------------------------------------


def test_a_call_is_answered_with_the_committed_response(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    with working(broker):
        reply = ask(caller, info)

    assert reply == CallReply(body=FIRST)
    assert effects() == 1
    assert one("SELECT state, response FROM calls WHERE call_id = %s", (info.call_id,)) == ("done", FIRST.decode())


def test_a_call_leaves_nothing_in_redis(broker: SluiceBroker, caller: Caller, server: redis.Redis) -> None:
    declare_call(broker, take_effect)
    with working(broker):
        ask(caller)
        eventually(lambda: worked_off(broker))

    reports = {f"{NAMESPACE}:__heartbeats__", f"{NAMESPACE}:heartbeats:~began"}
    assert {key.decode() for key in server.keys("*")} <= reports


def test_a_refusal_is_raised_for_the_caller_and_not_stored(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect_and_refuse)
    info = call_info("key")
    with working(broker), pytest.raises(PaymentBadAmount, match="no such amount"):
        ask(caller, info)

    assert effects() == 0
    assert state(info) is None


def test_an_actors_rate_limit_is_raised_with_its_delay(broker: SluiceBroker, caller: Caller) -> None:
    def refuse(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info):
            raise TooManyRequestsError(retry_after_s=len(payload))

    declare_call(broker, refuse, name="work")
    info = call_info("key")
    with working(broker), pytest.raises(TooManyRequestsError) as refusal:
        ask(caller, info)

    assert refusal.value.retry_after_s == 2
    assert state(info) is None


def test_a_refusal_frees_its_key(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect_and_refuse)
    declare_call(broker, take_effect, name="better")
    with working(broker):
        with pytest.raises(PaymentBadAmount):
            ask(caller, call_info("key"))
        reply = caller.call("better", queue=QUEUE, info=call_info("key"), payload=b"{}")

    assert reply == CallReply(body=FIRST)


def test_a_refusal_unknown_to_this_version_is_busy(broker: SluiceBroker, caller: Caller) -> None:
    class FromTheFuture(GatewayBusy, code="payment.from_the_future", status=400):
        """An error of a newer version."""

    def refuse(_info: CallInfo, _payload: bytes) -> CallReply:
        raise FromTheFuture

    declare_call(broker, refuse)
    with working(broker):
        from core.errors.base import _register  # noqa: PLC0415

        del _register["payment.from_the_future"]
        with pytest.raises(DomainError) as caught:
            ask(caller)

    assert caught.value.code == "gateway.busy"


def test_a_malformed_answer_is_decided_by_the_row(broker: SluiceBroker, caller: Caller, server: redis.Redis) -> None:
    info = call_info()
    server.lpush(f"{NAMESPACE}:answer:{info.call_id}", b"\xc1 not an answer")

    with pytest.raises(GatewayBusy):
        ask(caller, info)
    assert state(info) == "abandoned"
    assert broker.backlog(QUEUE).waiting == 1


def test_arguments_of_a_newer_version_are_ignored(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = queue_caller._envelope

    def newer(*args: Any, **kwargs: Any) -> Any:
        made = envelope(*args, **kwargs)
        made.kwargs["colour"] = "green"
        del made.kwargs[STAMP]
        made.kwargs[STAMP] = broker.stamps.stamp_call(QUEUE, "work", made.kwargs)
        return made

    monkeypatch.setattr(queue_caller, "_envelope", newer)
    declare_call(broker, take_effect)
    with working(broker):
        assert ask(caller).body == FIRST


def test_a_malformed_call_does_not_stop_the_worker(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    arguments = {"call_id": "no uuid"}
    arguments[STAMP] = broker.stamps.stamp_call(QUEUE, "work", arguments)
    message = queue_caller._envelope("work", QUEUE, call_info(), b"{}", now_ms=0, wait_s=60, stamps=broker.stamps)
    message.kwargs = arguments
    with working(broker, threads=1):
        broker.do_enqueue(QUEUE, message.message_id, encode(message))
        assert ask(caller).body == FIRST


def test_a_caller_may_wait_longer(broker: SluiceBroker, redis_url: str) -> None:
    def slow(info: CallInfo, payload: bytes) -> CallReply:
        time.sleep(0.5)
        return take_effect(info, payload)

    declare_call(broker, slow)
    caller = Caller(broker, make_settings(redis_url, call_wait_s=0.1))
    with working(broker):
        assert ask(caller, wait_s=60).body == FIRST


# Keys ---------------------------------------------------------------------------------------------------------------


def test_a_repetition_with_its_key_gets_the_first_response(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    with working(broker):
        first = ask(caller, call_info("key"))
        second = ask(caller, call_info("key"))

    assert (first, second) == (CallReply(body=FIRST), CallReply(body=FIRST, replayed=True))
    assert effects() == 1


def test_an_identical_request_is_recognised_under_any_key(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    first, second = replace(call_info("key"), signature_key="one"), replace(call_info("key"), signature_key="two")
    with working(broker):
        replies = [ask(caller, first), ask(caller, second)]
        replies += [ask(caller, replace(call_info("new"), signature_key=known)) for known in ("one", "two")]
        replies += [ask(caller, call_info(known)) for known in ("one", "two")]

    assert replies == [CallReply(body=FIRST)] + [CallReply(body=FIRST, replayed=True)] * 5
    assert effects() == 1


def test_a_key_of_another_request_is_refused(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    with working(broker):
        ask(caller, call_info("key"))
        with pytest.raises(IdempotencyKeyReused):
            ask(caller, call_info("key", fingerprint=b"\x02" * 32))

    assert effects() == 1


def test_a_key_in_use_is_refused_at_once(
    broker: SluiceBroker, caller: Caller, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_calls, "STEP_TIMEOUT_MS", 60_000)
    declare_call(broker, take_effect)
    with working(broker), contextlib.closing(psycopg2.connect(database)) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s::uuid || %s, 1))", (MERCHANT, "key"))
        started = time.monotonic()
        with pytest.raises(IdempotencyInProgress):
            ask(caller, call_info("key"))
        assert time.monotonic() - started < 20

    assert effects() == 0


def test_a_hundred_concurrent_calls_with_one_key_take_effect_once(broker: SluiceBroker, redis_url: str) -> None:
    declare_call(broker, take_effect)
    caller = Caller(broker, make_settings(redis_url, call_slots=40, web_threads=60))

    def attempt(_: int) -> bytes | type[DomainError]:
        try:
            return ask(caller, call_info("key")).body
        except DomainError as error:
            return type(error)
        finally:
            broker.link.close()
            base.close()

    with working(broker, threads=4), ThreadPoolExecutor(30) as pool:
        outcomes = list(pool.map(attempt, range(100)))

    assert effects() == 1
    assert set(outcomes) <= {FIRST, IdempotencyInProgress}
    assert FIRST in outcomes


# The truth of 503 ---------------------------------------------------------------------------------------------------


def test_a_call_not_taken_in_time_never_takes_effect(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    with pytest.raises(GatewayBusy):
        ask(caller, wait_s=WAIT_S)

    with working(broker):
        eventually(lambda: worked_off(broker))
    assert effects() == 0


def test_the_tombstone_decides_whatever_the_clock_shows(broker: SluiceBroker, caller: Caller) -> None:
    """Given a message within its time by every clock, and a caller that already got a refusal."""
    declare_call(broker, take_effect)
    info = call_info()
    with pytest.raises(GatewayBusy):
        ask(caller, info, wait_s=WAIT_S)

    with working(broker):
        send_again(broker, info, wait_s=3_600)
        eventually(lambda: worked_off(broker))
    assert effects() == 0
    assert state(info) == "abandoned"


def test_the_clock_refuses_a_call_if_no_tombstone_could_be_written(broker: SluiceBroker) -> None:
    declare_call(broker, take_effect)
    with working(broker):
        send_again(broker, call_info(), wait_s=-1)
        eventually(lambda: worked_off(broker))

    assert effects() == 0


def test_a_retry_after_busy_takes_effect_once(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, take_effect)
    with pytest.raises(GatewayBusy):
        ask(caller, call_info("key"), wait_s=WAIT_S)
    with working(broker):
        assert ask(caller, call_info("key")) == CallReply(body=FIRST)

    assert effects() == 1


def test_a_commit_just_before_the_wait_ends_is_answered(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an actor in the middle of its transaction when its caller gives up, and commits after that."""
    giving_up = threading.Event()

    def slow(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            give_up(broker, info)
            assert giving_up.wait(60)
            time.sleep(0.3)
            return record.store(msgspec.Raw(FIRST))

    tombstone = queue_calls._tombstone

    def abandon(info: CallInfo) -> str | None:
        giving_up.set()
        return tombstone(info)

    monkeypatch.setattr(queue_calls, "_tombstone", abandon)
    declare_call(broker, slow)
    with working(broker):
        assert ask(caller).body == FIRST
    assert giving_up.is_set()
    assert effects() == 1


def test_a_transaction_that_outlasts_its_call_never_takes_effect(broker: SluiceBroker, caller: Caller) -> None:
    """Given many short statements, as for thousands of small deposits, that end after the caller got a refusal."""
    ended = threading.Event()

    def slow(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            while not ended.is_set():
                execute("SELECT pg_sleep(0.01)")
            return record.store(msgspec.Raw(FIRST))

    declare_call(broker, slow)
    info = call_info()
    with working(broker):
        with pytest.raises(GatewayBusy):
            ask(caller, info, wait_s=1)
        ended.set()
        eventually(lambda: worked_off(broker))

    assert effects() == 0
    assert state(info) == "abandoned"


def test_a_bug_in_an_actor_is_busy_at_once_and_has_no_effect(broker: SluiceBroker, caller: Caller) -> None:
    def fail(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info):
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            raise ZeroDivisionError

    declare_call(broker, fail)
    info = call_info()
    started = time.monotonic()
    with working(broker), pytest.raises(GatewayBusy):
        ask(caller, info)

    assert time.monotonic() - started < 20
    assert effects() == 0
    assert state(info) == "abandoned"


def test_a_bug_after_the_commit_is_answered_with_the_committed_response(broker: SluiceBroker, caller: Caller) -> None:
    def fail(info: CallInfo, payload: bytes) -> CallReply:
        take_effect(info, payload)
        raise ZeroDivisionError

    declare_call(broker, fail)
    with working(broker):
        assert ask(caller).body == FIRST
    assert effects() == 1


def test_a_duplicate_delivery_takes_effect_once_and_is_answered_again(
    broker: SluiceBroker, caller: Caller, server: redis.Redis
) -> None:
    declare_call(broker, take_effect)
    info = call_info("key")
    with working(broker):
        first = ask(caller, info)
        send_again(broker, info)
        answer = server.blpop([f"{NAMESPACE}:answer:{info.call_id}"], timeout=60)
        eventually(lambda: worked_off(broker))

    assert first.body == FIRST
    assert answer is not None
    assert broker.stamps.unpack(QUEUE, "work", info.call_id, answer[1]) == Answer(kind="done", body=FIRST)
    assert effects() == 1


def test_two_concurrent_deliveries_take_effect_once(broker: SluiceBroker, caller: Caller) -> None:
    def slow(info: CallInfo, payload: bytes) -> CallReply:
        time.sleep(0.1)
        return take_effect(info, payload)

    declare_call(broker, slow)
    info = call_info()
    send_again(broker, info)
    with working(broker, threads=2):
        assert ask(caller, info).body == FIRST
        eventually(lambda: worked_off(broker))
    assert effects() == 1


def test_without_a_free_slot_a_call_is_busy_at_once_and_not_sent(broker: SluiceBroker, redis_url: str) -> None:
    caller, info = Caller(broker, make_settings(redis_url, call_wait_s=25, call_slots=1)), call_info()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, caller, info, wait_s=90)
        eventually(lambda: broker.backlog(QUEUE).waiting == 1)
        started = time.monotonic()
        with pytest.raises(GatewayBusy):
            ask(caller)
        took_s = time.monotonic() - started
        give_up(broker, info)
        with pytest.raises(GatewayBusy):
            waiting.result()
        pool.submit(base.close).result()
        pool.submit(broker.link.close).result()

    assert took_s < 20
    assert broker.backlog(QUEUE).waiting == 1


def test_calls_that_wait_long_leave_most_slots_to_others(broker: SluiceBroker, redis_url: str) -> None:
    caller = Caller(broker, make_settings(redis_url, call_wait_s=0.2, call_slots=queue_caller.LONG_SHARE))
    info = call_info()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, caller, info, wait_s=90)
        eventually(lambda: broker.backlog(QUEUE).waiting == 1)
        started = time.monotonic()
        with pytest.raises(GatewayBusy):
            ask(caller, wait_s=90)
        refused_s = time.monotonic() - started
        with pytest.raises(GatewayBusy):
            ask(caller)
        assert broker.backlog(QUEUE).waiting == 2, "a call of the usual wait was sent"
        give_up(broker, info)
        with pytest.raises(GatewayBusy):
            waiting.result()
        pool.submit(base.close).result()
        pool.submit(broker.link.close).result()
    assert refused_s < 45
    with pytest.raises(GatewayBusy):
        ask(caller, wait_s=0.3)
    assert broker.backlog(QUEUE).waiting == 3, "the slot was free again"


def test_calls_of_one_merchant_leave_slots_to_others(broker: SluiceBroker, redis_url: str) -> None:
    caller = Caller(broker, make_settings(redis_url, call_wait_s=0.05, call_slots=queue_caller.KEPT_SHARE))
    mine = call_info()
    with contextlib.ExitStack() as stack:
        for _ in range(queue_caller.KEPT_SHARE - 1):
            stack.enter_context(caller._shares.taken(mine.merchant_id))
        with pytest.raises(GatewayBusy):
            ask(caller, mine)
        assert broker.backlog(QUEUE).waiting == 0
        with pytest.raises(GatewayBusy):
            ask(caller, replace(call_info(), merchant_id=None))
        assert broker.backlog(QUEUE).waiting == 1, "a buyer's call was sent"


def test_a_slot_is_free_again_after_every_outcome(broker: SluiceBroker, redis_url: str) -> None:
    declare_call(broker, take_effect_and_refuse)
    caller = Caller(broker, make_settings(redis_url, call_slots=1))
    with pytest.raises(GatewayBusy):
        ask(caller, wait_s=0.05)
    with working(broker):
        for _ in range(3):
            with pytest.raises(PaymentBadAmount):
                ask(caller)


# Redis away, flushed ------------------------------------------------------------------------------------------------


def test_without_redis_a_call_is_busy_and_has_a_tombstone(broker: SluiceBroker, caller: Caller, valkey: Valkey) -> None:
    info = call_info("key")
    valkey.stop()
    try:
        with pytest.raises(GatewayBusy):
            ask(caller, info)
    finally:
        valkey.start()

    assert state(info) == "abandoned"
    assert broker.backlog(QUEUE).waiting == 0


def test_losing_redis_ends_the_wait(broker: SluiceBroker, caller: Caller, valkey: Valkey) -> None:
    info = call_info()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, caller, info)
        eventually(lambda: broker.backlog(QUEUE).waiting == 1)
        started = time.monotonic()
        valkey.stop()
        try:
            with pytest.raises(GatewayBusy):
                waiting.result()
            took_s = time.monotonic() - started
        finally:
            valkey.start()
        pool.submit(base.close).result()

    assert took_s < 20
    assert state(info) == "abandoned"


def test_an_enqueue_that_failed_after_it_took_effect_is_decided_by_the_row(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_call(broker, take_effect)
    run = broker.link.run

    def cut(commands: Any, *, wait_s: float = 0.0) -> Any:
        if commands and commands[-1][0] == "BLPOP":
            run(commands[:-1])
            eventually(lambda: effects() == 1)
            raise LinkDownError("cut")
        return run(commands, wait_s=wait_s)

    with working(broker):
        monkeypatch.setattr(broker.link, "run", cut)
        assert ask(caller).body == FIRST


def test_a_flush_before_the_fetch_is_busy_without_effect(
    broker: SluiceBroker, caller: Caller, server: redis.Redis
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, caller, info, wait_s=WAIT_S)
        eventually(lambda: broker.backlog(QUEUE).waiting == 1)
        server.flushall()
        with working(broker), pytest.raises(GatewayBusy):
            waiting.result()
        pool.submit(base.close).result()
        pool.submit(broker.link.close).result()

    assert effects() == 0
    assert state(info) == "abandoned"


def test_a_flush_while_the_actor_works_loses_no_answer(
    broker: SluiceBroker, caller: Caller, server: redis.Redis
) -> None:
    def flushing(info: CallInfo, payload: bytes) -> CallReply:
        server.flushall()
        return take_effect(info, payload)

    declare_call(broker, flushing)
    with working(broker):
        assert ask(caller).body == FIRST


def test_a_lost_answer_is_found_in_the_row(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    monkeypatch.setattr(broker, "answer", lambda *_, **__: give_up(broker, info))
    with working(broker):
        assert ask(caller, info).body == FIRST


# PostgreSQL away, slow, in a deadlock -------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "error"), [("key", IdempotencyUnavailable), (None, GatewayBusy)])
def test_without_postgresql_a_call_is_unavailable_and_leaves_the_queue(
    broker: SluiceBroker,
    caller: Caller,
    database: str,
    server: redis.Redis,
    key: str | None,
    error: type[DomainError],
) -> None:
    declare_call(broker, take_effect)
    base.connect("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(error):
        ask(caller, call_info(key), wait_s=WAIT_S)
    base.connect(database)

    assert not server.exists(f"{NAMESPACE}:{QUEUE}.msgs")
    with working(broker):
        eventually(lambda: broker.backlog(QUEUE).waiting == 0)
    assert effects() == 0


def test_without_postgresql_for_the_actor_a_call_is_busy_at_once(broker: SluiceBroker, caller: Caller) -> None:
    def cut_off(_info: CallInfo, _payload: bytes) -> CallReply:
        raise base.StoreUnavailableError("gone")

    declare_call(broker, cut_off)
    info = call_info("key")
    started = time.monotonic()
    with working(broker), pytest.raises(GatewayBusy):
        ask(caller, info)

    assert time.monotonic() - started < 20
    assert state(info) == "abandoned"


def test_a_connection_cut_at_commit_is_answered_with_the_committed_response(
    broker: SluiceBroker, caller: Caller
) -> None:
    def cut_at_commit(info: CallInfo, payload: bytes) -> CallReply:
        take_effect(info, payload)
        raise base.StoreUnavailableError("the connection ended during COMMIT")

    declare_call(broker, cut_at_commit)
    with working(broker):
        assert ask(caller).body == FIRST


def test_a_session_ended_within_a_step_commits_nothing(broker: SluiceBroker, caller: Caller, database: str) -> None:
    def cut(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            row = one("SELECT pg_backend_pid()")
            assert row is not None
            with contextlib.closing(psycopg2.connect(database)) as admin, admin.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", row)
            return record.store(msgspec.Raw(FIRST))

    declare_call(broker, cut)
    declare_call(broker, take_effect, name="next")
    info = call_info()
    with working(broker, threads=1):
        with pytest.raises(GatewayBusy):
            ask(caller, info)
        after = caller.call("next", queue=QUEUE, info=call_info(), payload=b"{}")

    assert state(info) == "abandoned"
    assert after.body == FIRST


def test_a_lock_not_obtained_in_time_is_busy_and_commits_nothing(
    broker: SluiceBroker, caller: Caller, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_calls, "STEP_TIMEOUT_MS", 200)

    def locking(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            execute("LOCK TABLE merchants")
            return record.store(msgspec.Raw(FIRST))

    declare_call(broker, locking)
    with contextlib.closing(psycopg2.connect(database)) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE merchants")
        with working(broker), pytest.raises(GatewayBusy):
            ask(caller)
    assert effects() == 0


def test_a_slow_statement_is_busy_and_commits_nothing(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_calls, "STEP_TIMEOUT_MS", 200)

    def sleeping(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            one("SELECT pg_sleep(60)")
            return record.store(msgspec.Raw(FIRST))

    declare_call(broker, sleeping)
    started = time.monotonic()
    with working(broker), pytest.raises(GatewayBusy):
        ask(caller)
    assert time.monotonic() - started < 20
    assert effects() == 0


@pytest.mark.parametrize(("failures", "is_answered"), [(3, 1), (4, 0)])
@pytest.mark.parametrize("code", ["40P01", "40001"])
def test_the_victim_of_a_deadlock_is_repeated_three_times(
    broker: SluiceBroker, caller: Caller, code: str, failures: int, is_answered: int
) -> None:
    left = [failures]

    def deadlocking(info: CallInfo, payload: bytes) -> CallReply:
        with recorded(info) as record:
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            if left[0]:
                left[0] -= 1
                execute(f"DO $$ BEGIN RAISE EXCEPTION 'as planned' USING ERRCODE = '{code}'; END $$")
            return record.store(msgspec.Raw(FIRST))

    declare_call(broker, deadlocking)
    with working(broker), contextlib.nullcontext() if is_answered else pytest.raises(GatewayBusy):
        assert ask(caller).body == FIRST
    assert effects() == is_answered


# Secrets ------------------------------------------------------------------------------------------------------------


def _tell(info: CallInfo, _payload: bytes) -> CallReply:
    with recorded(info) as record:
        return record.store({"secret": "whsec_hidden"})


def test_a_secret_answer_is_sealed_in_transit_and_never_stored(
    broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_call(broker, _tell, is_secret=True)
    sent: list[bytes] = []
    answer = broker.answer
    monkeypatch.setattr(broker, "answer", lambda key, body, **kept: (sent.append(body), answer(key, body, **kept)))
    info = call_info("key")
    with working(broker):
        assert ask(caller, info).body == b'{"secret":"whsec_hidden"}'

    assert b"whsec_hidden" not in sent[0]
    assert one("SELECT state, response, idem_key FROM calls WHERE call_id = %s", (info.call_id,)) == (
        "done",
        None,
        None,
    )


def test_a_lost_secret_answer_is_busy(broker: SluiceBroker, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    declare_call(broker, _tell, is_secret=True)
    monkeypatch.setattr(broker, "answer", lambda *_, **__: None)
    with working(broker), pytest.raises(GatewayBusy):
        ask(caller, wait_s=WAIT_S)


def test_a_secret_answer_of_another_call_does_not_open(
    broker: SluiceBroker, caller: Caller, server: redis.Redis
) -> None:
    info, other = call_info(), call_info()
    box = broker.box.seal(b"secret", bound_to=f"reply:{other.call_id}").encode()
    answer = Answer(kind="done", body=box, is_sealed=True)
    server.lpush(f"{NAMESPACE}:answer:{info.call_id}", broker.stamps.pack(QUEUE, "work", info.call_id, answer))

    with pytest.raises(GatewayBusy):
        ask(caller, info)


def test_a_secret_call_delivered_twice_is_answered_once(broker: SluiceBroker, caller: Caller) -> None:
    declare_call(broker, _tell, is_secret=True)
    info = call_info()
    with working(broker):
        ask(caller, info)
        with pytest.raises(GatewayBusy):
            ask(caller, info)


# Recorded steps -----------------------------------------------------------------------------------------------------


def test_a_discarded_step_commits_nothing_and_raises_nothing() -> None:
    info = call_info("key")
    with recorded(info) as record:
        execute("INSERT INTO testing.effects (name) VALUES ('x')")
        record.discard()

    assert effects() == 0
    assert state(info) is None


def test_a_step_without_a_stored_response_raises(database: str) -> None:
    del database
    info = call_info()
    with pytest.raises(RuntimeError, match="stores no answer"), recorded(info):
        pass

    assert state(info) is None


def test_a_function_with_the_spec_of_another_actor_is_refused() -> None:
    def echo(info: CallInfo, body: dict[str, int]) -> CallReply:
        raise NotImplementedError

    with pytest.raises(ValueError, match="echo has the spec of create_invoice"):
        queue_caller.call_actor(CallSpec(name="create_invoice", queue=QUEUE), body=dict[str, int])(echo)
    assert "echo" not in REGISTRY


def test_the_decorator_returns_a_plain_function(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[Any] = []
    monkeypatch.setattr(call_actors, "register", entered.append)

    @queue_caller.call_actor(CallSpec(name="echo", queue=QUEUE), body=dict[str, int])
    def echo(_info: CallInfo, body: dict[str, int]) -> CallReply:
        return CallReply(body=msgspec.json.encode(body["number"]))

    assert echo(call_info(), {"number": 7}) == CallReply(body=b"7")
    assert entered[0].bind.args[0](call_info(), b'{"number":7}') == CallReply(body=b"7")
    assert [(entry.name, entry.queue) for entry in entered] == [("echo", QUEUE)]

"""Calls that wait side by side are answered together if possible, and otherwise alone."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import pytest
import redis
from dramatiq import Message

from actors.queue import caller, gathering
from actors.queue.broker import SluiceBroker
from actors.queue.call_specs import CallSpec
from actors.queue.caller import Caller, CallInfo, CallReply, call_actor
from actors.queue.gathering import GATHER_MAX, PullingQueue
from actors.queue.registry import REGISTRY
from actors.queue.wire import encode
from core.errors import GatewayBusy, PaymentBadAmount
from models.db import base
from tests.actors.queue.workers import (
    QUEUE,
    call_info,
    declare,
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

pytestmark = pytest.mark.usefixtures("effects_table")

Asked = Sequence[tuple[CallInfo, bytes]]
WAIT_S: Final = 25.0


def bodies(asked: Asked) -> list[bytes]:
    return [payload for _, payload in asked]


class House:
    """Callers, and the actor that they call."""

    def __init__(self, broker: SluiceBroker, redis_url: str) -> None:
        self.broker = broker
        self.together: list[list[bytes]] = []
        self.alone: list[bytes] = []
        # Hooks that run before an actor begins.
        self.before_together: Callable[[Asked], None] = lambda _: None
        self.before_alone: Callable[[bytes], None] = lambda _: None
        self._caller = Caller(broker, make_settings(redis_url, call_wait_s=WAIT_S, call_slots=40, web_threads=60))
        self._pool = ThreadPoolExecutor(40)
        declare_call(broker, self._work, together=self._work_together)

    def _work_together(self, asked: Asked) -> list[CallReply | None]:
        self.together.append(bodies(asked))
        self.before_together(asked)
        return take_effect_together(asked)

    def _work(self, info: CallInfo, payload: bytes) -> CallReply:
        self.alone.append(payload)
        self.before_alone(payload)
        return take_effect(info, payload)

    def ask(self, *payloads: bytes, infos: Sequence[CallInfo] = ()) -> list[Future[CallReply]]:
        """Make calls that wait in this order, before a worker runs."""
        asked = []
        for number, payload in enumerate(payloads):
            info = infos[number] if infos else call_info()
            waiting = self.broker.backlog(QUEUE).waiting
            asked.append(self._pool.submit(self._call, info, payload))
            eventually(lambda: self.broker.backlog(QUEUE).waiting > waiting)  # noqa: B023 - over before the next
        return asked

    def ask_at_work(self, payload: bytes) -> Future[CallReply]:
        """Make a call while a worker may run."""
        return self._pool.submit(self._call, call_info(), payload)

    def _call(self, info: CallInfo, payload: bytes) -> CallReply:
        try:
            return self._caller.call("work", queue=QUEUE, info=info, payload=payload)
        finally:
            base.close()
            self.broker.link.close()

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def house(broker: SluiceBroker, redis_url: str) -> Iterator[House]:
    made = House(broker, redis_url)
    yield made
    made.close()


def answers(asked: Sequence[Future[CallReply]]) -> list[bytes]:
    return [one.result(timeout=90).body for one in asked]


def worked_off(broker: SluiceBroker) -> bool:
    return bool(broker.do_qsize(QUEUE) == 0)


# Together -----------------------------------------------------------------------------------------------------------


def test_waiting_calls_are_answered_together_in_order_up_to_the_maximum(house: House) -> None:
    payloads = [f"{number}".encode() for number in range(GATHER_MAX + 4)]
    asked = house.ask(*payloads)
    with working(house.broker):
        assert answers(asked) == [b'"' + payload + b'"' for payload in payloads]
        eventually(lambda: worked_off(house.broker))

    assert house.together == [payloads[:GATHER_MAX], payloads[GATHER_MAX:]]
    assert (house.alone, effects()) == ([], len(payloads))


def test_a_call_that_waits_by_itself_is_run_alone(house: House) -> None:
    asked = house.ask(b"only")
    with working(house.broker):
        answers(asked)

    assert (house.together, house.alone) == ([], [b"only"])


def test_a_gathering_leaves_nothing_in_redis(house: House, server: redis.Redis) -> None:
    asked = house.ask(b"a", b"alone b", b"c")
    with working(house.broker):
        answers(asked)
        eventually(lambda: worked_off(house.broker))

    assert {key.decode() for key in server.keys("*")} <= {"test:__heartbeats__", "test:heartbeats:~began"}


def test_calls_of_other_actors_of_the_queue_are_not_gathered(house: House) -> None:
    seen: list[object] = []
    declare(house.broker, seen.append, name="other")
    asked = house.ask(b"a")
    house.broker.enqueue(Message(queue_name=QUEUE, actor_name="other", args=("x",), kwargs={}, options={}))
    asked += house.ask(b"b")
    with working(house.broker):
        assert answers(asked) == [b'"a"', b'"b"']
        eventually(lambda: seen == ["x"])

    assert house.together == [[b"a", b"b"]]


# Neighbours ---------------------------------------------------------------------------------------------------------


def test_a_left_over_call_runs_alone_and_its_neighbours_do_not(house: House) -> None:
    def refuse(_: bytes) -> None:
        raise PaymentBadAmount("no such amount")

    house.before_alone = refuse
    asked = house.ask(b"a", b"alone b", b"c")
    with working(house.broker):
        assert (answers(asked[:1]), answers(asked[2:])) == ([b'"a"'], [b'"c"'])
        with pytest.raises(PaymentBadAmount):
            answers(asked[1:2])

    assert (house.alone, effects()) == ([b"alone b"], 2)


def test_a_left_over_call_that_waits_delays_no_neighbour(house: House) -> None:
    release = threading.Event()
    house.before_alone = lambda payload: (payload == b"alone slow" and release.wait(60)) and None
    asked = house.ask(b"a", b"alone slow", b"alone quick", b"c")
    with working(house.broker):
        assert answers([asked[0], asked[3]]) == [b'"a"', b'"c"']
        answers([asked[2]])
        assert not asked[1].done()
        release.set()
        answers([asked[1]])

    assert effects() == 4


def test_after_a_failed_step_each_call_runs_alone(house: House) -> None:
    def fail(_: Asked) -> None:
        raise ValueError("as planned")

    house.before_together = fail
    asked = house.ask(b"a", b"b", b"c")
    with working(house.broker, threads=1):
        answers(asked)

    assert (sorted(house.alone), effects()) == ([b"a", b"b", b"c"], 3)


def test_calls_that_an_interrupted_step_had_committed_are_answered_and_not_repeated(house: House) -> None:
    def commit_and_die(asked: Asked) -> None:
        take_effect_together(asked)
        raise base.StoreUnavailableError("cut at COMMIT")

    house.before_together = commit_and_die
    asked = house.ask(b"a", b"b")
    with working(house.broker):
        assert answers(asked) == [b'"a"', b'"b"']

    assert effects() == 2


def test_one_of_two_calls_with_a_key_runs_and_the_other_is_replayed(house: House) -> None:
    asked = house.ask(b"a", b"a", b"b", infos=[call_info("k"), call_info("k"), call_info()])
    with working(house.broker):
        replies = [one.result(timeout=90) for one in asked]

    assert [(reply.body, reply.replayed) for reply in replies] == [(b'"a"', False), (b'"a"', True), (b'"b"', False)]
    assert (house.together, effects()) == ([[b"a", b"b"]], 2)


def test_a_call_that_is_also_recognised_by_its_signature_runs_alone(house: House) -> None:
    signed = replace(call_info("k"), signature_key="signature")
    asked = house.ask(b"a", b"signed", b"b", infos=[call_info(), signed, call_info()])
    with working(house.broker):
        answers(asked)

    assert (house.together, house.alone) == ([[b"a", b"b"]], [b"signed"])


def test_a_call_delivered_twice_into_a_gathering_takes_effect_once(house: House) -> None:
    info = call_info()
    asked = house.ask(b"a", infos=[info])
    _send(house.broker, info, b"a", redis_id="again")
    asked += house.ask(b"b")
    with working(house.broker):
        assert answers(asked) == [b'"a"', b'"b"']
        eventually(lambda: worked_off(house.broker))

    assert (house.together, effects()) == ([[b"a", b"b"]], 2)


def test_an_abandoned_call_has_no_effect_and_its_neighbours_do(house: House) -> None:
    given_up = call_info()
    asked = house.ask(b"a", b"gone", b"b", infos=[call_info(), given_up, call_info()])
    give_up(house.broker, given_up)
    with pytest.raises(GatewayBusy):
        answers(asked[1:2])
    with working(house.broker):
        answers([asked[0], asked[2]])
        eventually(lambda: worked_off(house.broker))

    assert effects() == 2


def test_a_late_call_has_no_effect_and_its_neighbours_do(house: House) -> None:
    asked = house.ask(b"a")
    _send(house.broker, call_info(), b"late", wait_s=-1)
    asked += house.ask(b"b")
    with working(house.broker):
        answers(asked)
        eventually(lambda: worked_off(house.broker))

    assert (house.together, house.alone, effects()) == ([[b"a", b"b"]], [], 2)


def test_a_forged_call_has_no_effect_and_its_neighbours_are_answered(house: House, redis_url: str) -> None:
    stranger = make_broker(redis_url, secret_keys=f"other:{base64.b64encode(bytes(32)).decode()}")
    asked = house.ask(b"a")
    _send(stranger, call_info(), b"forged")
    stranger.link.close()
    asked += house.ask(b"b")
    with working(house.broker):
        answers(asked)
        eventually(lambda: worked_off(house.broker))

    assert (house.together, house.alone, effects()) == ([[b"a", b"b"]], [], 2)


@pytest.mark.parametrize("value", [None, [], {"messages": [], "settled": []}, "x"])
def test_no_message_from_redis_can_pose_as_a_gathering(house: House, value: object) -> None:
    house.broker.enqueue(Message(queue_name=QUEUE, actor_name="work", args=(), kwargs={"gathering": value}, options={}))
    with working(house.broker):
        eventually(lambda: worked_off(house.broker))
        answers([house.ask_at_work(b"a")])

    assert house.together == []


def _send(
    broker: SluiceBroker, info: CallInfo, payload: bytes, *, wait_s: float = WAIT_S, redis_id: str | None = None
) -> None:
    """Put a call without a waiting caller into the queue."""
    message = caller._envelope(
        "work", QUEUE, info, payload, now_ms=broker.link.now_ms(), wait_s=wait_s, stamps=broker.stamps
    )
    if redis_id is not None:
        message.options["redis_message_id"] = redis_id
    broker.do_enqueue(QUEUE, message.options["redis_message_id"], encode(message))


# Turns --------------------------------------------------------------------------------------------------------------


def test_calls_that_arrive_during_a_gathering_form_the_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "PATIENCE_S", 60.0)
    is_begun, release = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        is_begun.set()
        release.wait(60)

    house.before_alone = house.before_together = hold
    asked = house.ask(b"first")
    with working(house.broker, threads=4):
        assert is_begun.wait(60)
        asked += house.ask(b"a", b"b", b"c")
        release.set()
        answers(asked)

    assert (house.alone, house.together) == ([b"first"], [[b"a", b"b", b"c"]])


def test_a_slow_gathering_is_not_waited_for(house: House) -> None:
    release = threading.Event()
    house.before_together = lambda asked: (asked[0][1] == b"slow" and release.wait(60)) and None
    slow = house.ask(b"slow", b"slow too")
    with working(house.broker, threads=2, timeout_ms=500):
        eventually(lambda: house.together)
        assert answers([house.ask_at_work(b"quick")])
        assert not any(one.done() for one in slow)
        release.set()
        answers(slow)


def test_other_messages_are_worked_on_by_all_threads(broker: SluiceBroker) -> None:
    together = threading.Barrier(3)
    declare(broker, lambda: together.wait(60) and None)
    for _ in range(3):
        broker.enqueue(Message(queue_name=QUEUE, actor_name="work", args=(), kwargs={}, options={}))
    with working(broker, threads=3):
        eventually(lambda: worked_off(broker))

    assert not together.broken


def test_a_worker_of_several_queues_gathers_too(house: House) -> None:
    declare(house.broker, lambda: None, name="elsewhere", queue="maintenance")
    asked = house.ask(b"a", b"b")
    with working(house.broker) as worker:
        answers(asked)
        assert not isinstance(worker.work_queue, PullingQueue)

    assert (house.together, sorted(house.alone)) == ([], [b"a", b"b"])


def test_calls_left_by_a_stopped_worker_are_done_by_the_next(house: House, redis_url: str) -> None:
    """Its thread ends after the gathering, and returns the unanswered calls."""
    is_begun, go_on = threading.Event(), threading.Event()

    def hold(_: Asked) -> None:
        is_begun.set()
        go_on.wait(60)

    house.before_together = hold
    asked = house.ask(b"a", b"alone b", b"alone c")
    with working(house.broker, threads=1) as worker:
        assert is_begun.wait(60)
        for thread in worker.workers:
            thread.stop()
        go_on.set()
    assert house.alone == []

    other = make_broker(redis_url)
    declare_call(other, take_effect)
    with working(other):
        answers(asked)
    other.link.close()
    assert effects() == 3


# Redis away ---------------------------------------------------------------------------------------------------------


def test_a_flush_while_a_gathering_is_under_way_loses_no_answer(house: House, server: redis.Redis) -> None:
    def flush(_: Asked) -> None:
        house.before_together = lambda _: None
        server.flushall()

    house.before_together = flush
    asked = house.ask(b"a", b"alone b", b"c")
    with working(house.broker):
        assert answers([asked[0], asked[2]]) == [b'"a"', b'"c"']
        answers([asked[1]])

    assert effects() == 3


def test_an_actor_with_a_secret_answer_cannot_be_gathered() -> None:
    def together(_: Any) -> list[CallReply | None]:
        return []

    def secretly(info: CallInfo, body: dict[str, str]) -> CallReply:
        raise NotImplementedError

    with pytest.raises(ValueError, match="secret"):
        call_actor(CallSpec(name="secretly", queue=QUEUE), body=dict, secret=True, together=together)(secretly)
    assert "secretly" not in REGISTRY

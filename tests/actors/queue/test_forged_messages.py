"""A stranger who writes to Redis gets no call done or answered, and no moved message has an effect."""

from __future__ import annotations

import base64
import importlib
from dataclasses import replace
from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
import pytest
import redis
from structlog.testing import capture_logs

from actors import context
from actors.queue import call_actors
from actors.queue import caller as queue_caller
from actors.queue.broker import SluiceBroker
from actors.queue.caller import Caller, CallInfo, CallReply
from actors.queue.messages import STAMP, Answer, answer_key
from actors.queue.registry import modules_for
from actors.queue.schedule import DOORBELLS
from actors.queue.wire import Envelope, encode
from core.errors import GatewayBusy
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db.base import one, rows
from tests.actors.queue.workers import (
    NAMESPACE,
    QUEUE,
    call_info,
    declare,
    declare_call,
    effects,
    eventually,
    make_broker,
    make_settings,
    take_effect,
    working,
)

pytestmark = pytest.mark.usefixtures("effects_table")

FIRST: Final = b'{"number":1}'
THIEF: Final = b'{"address":"0x00000000000000000000000000000000000bad"}'
NEW_KEY: Final = "new:" + base64.b64encode(b"n" * 32).decode()
ROTATED: Final = f"{NEW_KEY},{DEVELOPMENT_SECRET_KEYS}"
DAY_MS: Final = 86_400_000


@pytest.fixture
def caller(broker: SluiceBroker, redis_url: str) -> Caller:
    return Caller(broker, make_settings(redis_url, call_wait_s=25))


def ask(caller: Caller, info: CallInfo | None = None) -> CallReply:
    return caller.call("work", queue=QUEUE, info=info or call_info(), payload=b"{}")


def captured(
    broker: SluiceBroker, info: CallInfo | None = None, *, queue: str = QUEUE, actor: str = "work"
) -> Envelope:
    """Return a call as our processes send it and as a stranger reads it in Redis."""
    made = queue_caller._envelope(
        actor, queue, info or call_info(), b"{}", now_ms=broker.link.now_ms(), wait_s=600, stamps=broker.stamps
    )
    return msgspec.json.decode(encode(made), type=Envelope)


def put(broker: SluiceBroker, message: Envelope) -> None:
    broker.do_enqueue(message.queue_name, message.message_id, encode(message))


def assert_refused(broker: SluiceBroker, server: redis.Redis, message: Envelope, event: str = "call.forged") -> None:
    """Check that the call has no effect and no answer, that an error is logged and that the worker continues."""
    with capture_logs() as lines, working(broker, threads=1):
        put(broker, message)
        eventually(lambda: broker.do_qsize(message.queue_name) == 0)
    assert effects() == 0
    assert server.exists(answer_key(NAMESPACE, message.kwargs.get("call_id"))) == 0
    assert [line["log_level"] for line in lines if line["event"] == event] == ["error"]


# Calls --------------------------------------------------------------------------------------------------------------


def test_a_captured_call_works_so_that_the_refusals_below_mean_something(broker: SluiceBroker) -> None:
    declare_call(broker, take_effect)
    with working(broker):
        put(broker, captured(broker))
        eventually(lambda: effects() == 1)


@pytest.mark.parametrize(
    "stamp",
    [None, 7, "", "development:", "development:" + "0" * 64, "stranger:" + "0" * 64],
    ids=["none", "no text", "empty", "no mac", "made up", "unknown key"],
)
def test_a_call_without_a_valid_stamp_is_neither_done_nor_answered(
    broker: SluiceBroker, server: redis.Redis, stamp: Any
) -> None:
    declare_call(broker, take_effect)
    message = captured(broker)
    del message.kwargs[STAMP]
    if stamp is not None:
        message.kwargs[STAMP] = stamp

    assert_refused(broker, server, message)


CHANGES: Final[dict[str, Any]] = {
    "call_id": str(UUID(int=1)),
    "merchant_id": str(UUID(int=8)),
    "principal_id": "pk_thief",
    "request_id": "other",
    "idem_key": "other",
    "fingerprint": "AAAA",
    "payload": '{"address":"0xthief"}',
    "until_ms": 1,
    "signature_key": "other",
    "added": True,
}


def test_the_tests_below_change_every_argument(broker: SluiceBroker) -> None:
    assert CHANGES.keys() - {"added"} == captured(broker).kwargs.keys() - {STAMP}


@pytest.mark.parametrize("name", CHANGES)
def test_a_call_with_a_changed_argument_is_refused(broker: SluiceBroker, server: redis.Redis, name: str) -> None:
    declare_call(broker, take_effect)
    message = captured(broker)
    change = message.kwargs["until_ms"] + 1 if name == "until_ms" else CHANGES[name]
    assert message.kwargs.get(name) != change
    message.kwargs[name] = change

    assert_refused(broker, server, message)


@pytest.mark.parametrize("name", ["merchant_id", "principal_id", "request_id", "idem_key", "signature_key"])
def test_a_call_without_one_of_its_arguments_is_refused(broker: SluiceBroker, server: redis.Redis, name: str) -> None:
    declare_call(broker, take_effect)
    message = captured(broker)
    del message.kwargs[name]

    assert_refused(broker, server, message)


def test_a_call_to_one_actor_is_refused_by_another(broker: SluiceBroker, server: redis.Redis) -> None:
    declare_call(broker, take_effect, name="approve")
    message = captured(broker, actor="cancel")
    message.actor_name = "approve"

    assert_refused(broker, server, message)


def test_a_call_is_refused_by_the_actor_of_another_queue(broker: SluiceBroker, server: redis.Redis) -> None:
    declare_call(broker, take_effect)
    message = captured(broker, queue="payouts")
    message.queue_name = QUEUE

    assert_refused(broker, server, message)


def test_a_call_in_another_queue_than_its_actors_is_skipped(broker: SluiceBroker, server: redis.Redis) -> None:
    declare_call(broker, take_effect)
    declare(broker, lambda: None, name="other", queue="payouts")
    message = captured(broker)
    message.queue_name = "payouts"

    assert_refused(broker, server, message, "queue.misplaced")


@pytest.mark.parametrize("days", [-2, 2])
def test_a_call_kept_until_its_row_was_pruned_is_refused_whatever_redis_reports_as_time(
    broker: SluiceBroker, server: redis.Redis, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    declare_call(broker, take_effect)
    today = broker.link.now_ms()
    monkeypatch.setattr(broker.link, "now_ms", lambda: today + days * DAY_MS)

    assert_refused(broker, server, captured(broker), "call.of_another_day")


def test_a_replayed_call_takes_effect_once(broker: SluiceBroker, caller: Caller, server: redis.Redis) -> None:
    declare_call(broker, take_effect)
    message = captured(broker, info := call_info())
    with working(broker):
        ask(caller, info)
        put(broker, message)
        eventually(lambda: server.exists(answer_key(NAMESPACE, info.call_id)))

    assert effects() == 1


# Answers ------------------------------------------------------------------------------------------------------------


def answered(broker: SluiceBroker, server: redis.Redis, info: CallInfo) -> bytes:
    """Return the answer to a call as a stranger reads it in Redis."""
    put(broker, captured(broker, info))
    with working(broker):
        popped = server.blpop([answer_key(NAMESPACE, info.call_id)], timeout=60)
    assert isinstance(popped, tuple)
    return bytes(popped[1])


def lay(server: redis.Redis, info: CallInfo, answer: bytes) -> None:
    server.lpush(answer_key(NAMESPACE, info.call_id), answer)


@pytest.mark.usefixtures("broker")
def test_a_forged_answer_with_another_address_is_not_shown(caller: Caller, server: redis.Redis) -> None:
    info = call_info()
    lay(server, info, msgspec.msgpack.encode(Answer(kind="done", body=THIEF)))

    with capture_logs() as lines, pytest.raises(GatewayBusy):
        ask(caller, info)
    assert [line["event"] for line in lines] == ["call.answer_forged"]


def test_after_a_forged_answer_the_committed_response_is_returned(
    broker: SluiceBroker, caller: Caller, server: redis.Redis
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    answered(broker, server, info)
    lay(server, info, msgspec.msgpack.encode(("development:" + "0" * 64, THIEF)))

    assert ask(caller, info).body == FIRST


def test_an_answer_is_refused_for_another_call(broker: SluiceBroker, caller: Caller, server: redis.Redis) -> None:
    declare_call(broker, take_effect)
    first, second = call_info(), call_info()
    lay(server, second, answered(broker, server, first))

    with pytest.raises(GatewayBusy):
        ask(caller, second)


@pytest.mark.parametrize(("queue", "actor"), [("payouts", "work"), (QUEUE, "other")])
def test_an_answer_is_refused_for_another_actors_call(
    broker: SluiceBroker, caller: Caller, server: redis.Redis, queue: str, actor: str
) -> None:
    info = call_info()
    lay(server, info, broker.stamps.pack(queue, actor, info.call_id, Answer(kind="done", body=THIEF)))

    with pytest.raises(GatewayBusy):
        ask(caller, info)


TAMPERED: Final[dict[str, Any]] = {
    "kind": "error",
    "body": THIEF,
    "replayed": True,
    "is_sealed": True,
    "code": "payment.bad_amount",
    "text": "no",
    "retry_after_s": 1,
}


def test_the_tests_below_change_every_field_of_an_answer() -> None:
    assert tuple(TAMPERED) == Answer.__struct_fields__


@pytest.mark.parametrize("name", TAMPERED)
def test_an_answer_with_a_changed_field_is_refused(
    broker: SluiceBroker, caller: Caller, server: redis.Redis, name: str
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    stamp, body = msgspec.msgpack.decode(answered(broker, server, info))
    other = msgspec.structs.replace(msgspec.msgpack.decode(body, type=Answer), **{name: TAMPERED[name]})
    lay(server, info, msgspec.msgpack.encode((stamp, msgspec.msgpack.encode(other))))

    assert ask(caller, info) == CallReply(body=FIRST)


@pytest.mark.parametrize(
    "junk",
    [b"", b"\xc1", b"\x92\xa1x", b"\x91" * 100_000, msgspec.msgpack.encode(("x", b"y", "z")), b"\x92\xa1x\xc4\x00"],
)
def test_a_malformed_answer_in_redis_is_decided_by_the_row(
    broker: SluiceBroker, caller: Caller, server: redis.Redis, junk: bytes
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    answered(broker, server, info)
    lay(server, info, junk)

    assert ask(caller, info).body == FIRST


def test_an_impossible_reply_of_redis_is_decided_by_the_row(
    broker: SluiceBroker, caller: Caller, server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_call(broker, take_effect)
    info = call_info()
    answered(broker, server, info)
    monkeypatch.setattr(broker.link, "run", lambda *_, **__: [7])

    assert ask(caller, info).body == FIRST


# Rotation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("web", "worker"),
    [
        (DEVELOPMENT_SECRET_KEYS, f"{DEVELOPMENT_SECRET_KEYS},{NEW_KEY}"),
        (f"{DEVELOPMENT_SECRET_KEYS},{NEW_KEY}", DEVELOPMENT_SECRET_KEYS),
        (f"{DEVELOPMENT_SECRET_KEYS},{NEW_KEY}", ROTATED),
        (ROTATED, f"{DEVELOPMENT_SECRET_KEYS},{NEW_KEY}"),
        (ROTATED, NEW_KEY),
        (NEW_KEY, ROTATED),
    ],
    ids=["add/worker", "add/web", "turn/worker", "turn/web", "drop/worker", "drop/web"],
)
@pytest.mark.usefixtures("broker")
def test_processes_of_both_sides_understand_each_other_during_a_rotation(redis_url: str, web: str, worker: str) -> None:
    works = make_broker(redis_url, secret_keys=worker)
    asks = make_broker(redis_url, secret_keys=web)
    declare_call(works, take_effect)
    with working(works):
        reply = ask(Caller(asks, make_settings(redis_url, call_wait_s=25)))
    asks.link.close()
    works.link.close()

    assert reply.body == FIRST


def test_a_worker_with_other_keys_does_nothing(redis_url: str, broker: SluiceBroker) -> None:
    stranger = make_broker(redis_url, secret_keys=NEW_KEY)
    declare_call(stranger, take_effect)
    with working(stranger), pytest.raises(GatewayBusy):
        ask(Caller(broker, make_settings(redis_url, call_wait_s=0.5)))
    stranger.link.close()

    assert effects() == 0


def test_a_call_belongs_to_its_registered_actor_and_queue(broker: SluiceBroker) -> None:
    """declare_call registers an actor for these tests as the decorator does."""
    answer = call_actors._answering(take_effect, broker, queue="payouts", name="approve", is_secret=False)
    arguments = captured(broker, queue="payouts", actor="approve").kwargs
    answer(**arguments)

    assert effects() == 1
    with capture_logs() as lines:
        answer(**captured(broker, replace(call_info(), call_id=uuid4()), queue="payouts", actor="cancel").kwargs)
    assert [line["event"] for line in lines] == ["call.forged"]


# Notifications ------------------------------------------------------------------------------------------------------


ARGUMENTS: Final[list[list[Any]]] = [
    ["atlantis"],
    ["bsc"],
    ["x" * 100_000],
    [""],
    [None],
    [7],
    [["ethereum"]],
    [{"network": "ethereum"}],
    [],
]


def rows_written() -> dict[str, int]:
    """Return each table's number of rows, except those of looks: the database's, the signer's, our own addresses."""
    tables = rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        " AND tablename NOT IN ('database_looks', 'database_marks', 'signer_states', 'treasury_addresses')"
    )
    document = {}
    for (table,) in tables:
        count = one(f'SELECT count(*) FROM "{table}"')
        assert count is not None
        document[table] = count[0]
    return document


@pytest.mark.parametrize("name", sorted(name for name, row in DOORBELLS.items() if row.for_each))
def test_a_forged_notification_does_no_harm(broker: SluiceBroker, database: str, name: str) -> None:
    """A notification has no stamp: it asks an actor to look for due rows, and without any nothing happens."""
    row = DOORBELLS[name]
    context.configure(make_settings(database_url=database))
    for module in modules_for({row.queue}):
        importlib.import_module(module)
    broker.serve({row.queue})
    before = rows_written()
    with working(broker, threads=1):
        for number, args in enumerate(ARGUMENTS):
            for kwargs in ({}, {"bell": "x"}, {"bell": {"a": [1]}, "more": 1}):
                put(broker, bell(row.queue, name, args, kwargs, number))
        put(broker, bell(row.queue, name, ["atlantis"], {"bell": name}, 99))
        eventually(lambda: broker.do_qsize(row.queue) == 0)

    assert rows_written() == before


def bell(queue: str, actor: str, args: list[Any], kwargs: dict[str, Any], number: int) -> Envelope:
    redis_id = f"{number}-{kwargs}"
    return Envelope(
        queue_name=queue,
        actor_name=actor,
        args=args,
        kwargs=kwargs,
        options={"redis_message_id": redis_id},
        message_id=redis_id,
        message_timestamp=0,
    )


def test_a_notification_carries_only_a_network_or_a_family() -> None:
    """So a forged one only causes a look that would be taken anyway."""
    assert {row.for_each for row in DOORBELLS.values()} == {None, "networks", "families"}

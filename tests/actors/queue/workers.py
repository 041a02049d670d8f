"""Workers, actors and callers for the tests of the queue."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import dramatiq
from dramatiq import Worker

from actors.queue import call_actors
from actors.queue.broker import SluiceBroker
from actors.queue.caller import CallInfo, CallReply, recorded
from actors.queue.messages import UNDECIDED, answer_key
from actors.queue.wire import WireEncoder
from core.errors import PaymentBadAmount
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.settings.settings import Settings, load_settings
from models.db.base import execute, one, transaction
from models.queue import calls
from tests.models.queue.builders import info
from tests.peers.databases.effects import EFFECTS

NAMESPACE: Final = "test"
QUEUE: Final = "invoices"
FINGERPRINT: Final = b"\x01" * 32


def make_broker(redis_url: str, **options: Any) -> SluiceBroker:
    """Make a broker as actors.queue.broker.make_broker does, but not the process's own."""
    dramatiq.set_encoder(WireEncoder())
    return SluiceBroker(url=redis_url, namespace=NAMESPACE, **({"secret_keys": DEVELOPMENT_SECRET_KEYS} | options))


def make_settings(redis_url: str = "redis://127.0.0.1:1/0", **fields: object) -> Settings:
    environment = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "REDIS_URL": redis_url,
        "REDIS_NAMESPACE": NAMESPACE,
        "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        "POLYGON_RPC_URLS": "http://127.0.0.1:1",
    }
    return load_settings(environment | {name.upper(): str(value) for name, value in fields.items()})


def declare(broker: SluiceBroker, function: Callable[..., None], *, name: str = "work", queue: str = QUEUE) -> None:
    dramatiq.actor(actor_name=name, queue_name=queue, broker=broker)(function)


def declare_call(
    broker: SluiceBroker, function: Any, *, name: str = "work", is_secret: bool = False, together: Any = None
) -> None:
    answer = call_actors._answering(function, broker, queue=QUEUE, name=name, is_secret=is_secret, together=together)
    declare(broker, answer, name=name)


@contextlib.contextmanager
def working(broker: SluiceBroker, *, threads: int = 2, timeout_ms: int = 50) -> Iterator[Worker]:
    """Run a worker in this process."""
    worker = Worker(broker, worker_threads=threads, worker_timeout=timeout_ms)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop(timeout=5_000)


def eventually(condition: Callable[[], object], *, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def call_info(idem_key: str | None = None, *, fingerprint: bytes = FINGERPRINT) -> CallInfo:
    return info(key=idem_key, fingerprint=fingerprint)


def give_up(broker: SluiceBroker, info: CallInfo) -> None:
    """End a caller's wait without an answer that decides."""
    body = broker.stamps.pack(QUEUE, "work", info.call_id, UNDECIDED)
    broker.link.run([("LPUSH", answer_key(NAMESPACE, info.call_id), body)])


# An effect that can be counted, in the transaction of its call.


def create_effects() -> None:
    """Create the table of effects, unless the database is one of those that have it and are emptied."""
    if one("SELECT to_regclass('testing.effects')") == (None,):
        execute("CREATE SCHEMA IF NOT EXISTS testing")
        execute(EFFECTS)


def effects() -> int:
    row = one("SELECT count(*) FROM testing.effects")
    assert row is not None
    return int(row[0])


def take_effect(info: CallInfo, payload: bytes) -> CallReply:
    """Act as a call actor with one effect a call."""
    with recorded(info) as record:
        execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
        return record.store({"number": effects()})


def take_effect_and_refuse(info: CallInfo, payload: bytes) -> CallReply:
    with recorded(info):
        execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
        raise PaymentBadAmount("no such amount")


def take_effect_together(asked: Sequence[tuple[CallInfo, bytes]]) -> list[CallReply | None]:
    """Answer several calls in one transaction, one effect each; leave over those whose body begins with "alone"."""
    plain = [(info, payload) for info, payload in asked if not payload.startswith(b"alone")]
    with transaction():
        for info, payload in plain:
            calls.begin(info)
            execute("INSERT INTO testing.effects (name) VALUES (%s)", (payload.decode(),))
            calls.finish(info.call_id, f'"{payload.decode()}"')
    done = {info.call_id for info, _ in plain}
    return [CallReply(body=b'"' + payload + b'"') if info.call_id in done else None for info, payload in asked]

"""Carries messages: dramatiq's Redis broker, with fewer waits and writes. Every actor file imports from here.

Wire format, keys, acknowledgement, dead letters and the taking back from dead workers stay dramatiq's own, and so does
their Lua. A stock producer or worker may use the same Redis at the same time.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, cast
from uuid import uuid4

import dramatiq
from dramatiq.brokers import redis as stock
from dramatiq.middleware import ShutdownNotifications
from dramatiq.worker import Worker

from actors.queue.consumer import BlockingConsumer
from actors.queue.delayed import DelayedConsumer
from actors.queue.doorbells import doorbell, ring
from actors.queue.gathering import PulledConsumer, PullingQueue
from actors.queue.heartbeats import Heartbeats
from actors.queue.idle_threads import FewestThreadsQueue
from actors.queue.link import Command, LinkDownError, RedisLink
from actors.queue.messages import CallStamps
from actors.queue.middleware import Entrance, ThreadKeeping
from actors.queue.registry import AWAITED_QUEUES, REGISTRY
from actors.queue.schedule import DOORBELLS
from actors.queue.wire import Envelope, WireEncoder, encode
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings
from models.db import after_commit
from models.db.locks import single_flight

__all__ = ["Backlog", "SluiceBroker", "doorbell", "make_broker", "ring", "single_flight"]

# Silence after which a worker counts as dead and its messages are given to others.
HEARTBEAT_TIMEOUT_MS: Final = 60_000
# Bounds what one fetch may unpack onto Lua's stack, whose limit is some thousands.
UNPACK_MAX: Final = 1_000
# A queue this long is not being worked off; notifications would only lengthen it, and the scheduler sends them again.
WAITING_MAX: Final = 1_000
# With prefetched calls a thread need not wait for the consumer: half as many calls again per second. In other queues a
# message that waits behind a long one could run in another process.
AWAITED_PREFETCH: Final = 2
# dramatiq's suffix for the queue of a queue's delayed messages.
DELAYED: Final = ".DQ"
# A notification's key expires after this long, so that doorbells of removed networks leave nothing behind.
BELL_KEPT_MS: Final = 86_400_000

# An answer that no caller fetches expires after this long.
ANSWER_KEPT_MS: Final = 60_000

# Answers callers and acknowledges the messages that brought their calls.
_SETTLE: Final = b"""
local answers = #KEYS - 2
for i = 1, answers do
  redis.call('LPUSH', KEYS[i + 2], ARGV[i + 1])
  redis.call('PEXPIRE', KEYS[i + 2], ARGV[1])
end
for i = answers + 2, #ARGV do
  if redis.call('SREM', KEYS[1], ARGV[i]) > 0 then redis.call('HDEL', KEYS[2], ARGV[i]) end
end
"""

# While a notification is unanswered, further ones of its doorbell are dropped: there is one message, not a pile. Its
# age is measured by Redis's own clock, so that the clocks of schedulers and workers need not agree.
_RING: Final = b"""
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local rung_ms = redis.call('GET', KEYS[1])
if rung_ms and math.abs(now_ms - rung_ms) < tonumber(ARGV[1]) then return 0 end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], now_ms, 'PX', ARGV[3])
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The number of messages in a queue, and its head's age (0 for an empty queue)."""

    waiting: int
    oldest_ms: int


class SluiceBroker(stock.RedisBroker):
    """A Redis broker that threads may share: no two use a connection at once."""

    def __init__(
        self,
        *,
        url: str,
        namespace: str,
        secret_keys: str,
        client_name: str = "sluice",
        heartbeat_timeout_ms: int = HEARTBEAT_TIMEOUT_MS,
    ) -> None:
        self.link = RedisLink(url, client_name=client_name)
        self.heartbeats = Heartbeats(self.link, namespace)
        super().__init__(  # type: ignore[no-untyped-call]
            url=url,
            namespace=namespace,
            heartbeat_timeout=heartbeat_timeout_ms,
            middleware=[ShutdownNotifications(), Entrance(), ThreadKeeping(self)],
        )
        # Seals answers that must not be readable in Redis.
        self.box = SecretBox(secret_keys)
        # Distinguishes calls and answers of our processes from forged ones.
        self.stamps = CallStamps(secret_keys)
        self._dispatch_sha = self.link.script(stock._scripts["dispatch"])  # noqa: SLF001 - its one home
        self._ring_sha = self.link.script(_RING)
        self._settle_sha = self.link.script(_SETTLE)
        self._left = threading.local()
        # Actors that can answer several calls in one step.
        self.gathered_actors: set[str] = set()
        self._pulling: PullingQueue | None = None
        # Set to stop the worker's threads, which otherwise wait for messages without end.
        self.stopping = threading.Event()
        # One for each group of threads.
        self._waiting: list[FewestThreadsQueue | PullingQueue] = []
        self._delayed: dict[str, DelayedConsumer] = {}

    def serve(self, queues: Collection[str]) -> None:
        """Declare the registered actors of these queues, so that a worker of this process runs them."""
        for registration in REGISTRY.values():
            if registration.queue in queues:
                declare = dramatiq.actor(
                    actor_name=registration.name, queue_name=registration.queue, broker=self, **registration.options
                )
                declare(registration.bind(self))

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> BlockingConsumer:
        """Return the consumer of a queue; called by dramatiq's worker."""
        if queue_name.endswith(DELAYED):
            delayed = DelayedConsumer(self, queue_name, prefetch=prefetch, timeout_ms=timeout)
            self._delayed[queue_name] = delayed
            return delayed
        if queue_name in AWAITED_QUEUES:
            prefetch *= AWAITED_PREFETCH
            if self._pulling is not None:
                return self._pulling.attach(PulledConsumer(self, queue_name, prefetch=prefetch, timeout_ms=timeout))
        return BlockingConsumer(self, queue_name, prefetch=prefetch, timeout_ms=timeout)

    def let_pull(self, worker: Worker) -> None:
        """Make a worker's threads fetch for themselves, if they serve one awaited queue alone; before it boots.

        Otherwise only as many threads work as are needed at once.
        """
        self.stopping.clear()
        if len(self.queues) == 1 and self.queues <= AWAITED_QUEUES:
            worker.work_queue = self._pulling = PullingQueue(self)
        else:
            worker.work_queue = FewestThreadsQueue()
        self._waiting.append(worker.work_queue)

    def stop_waiting(self) -> None:
        """Make the worker's threads end their waits and fetch no more; called before they are stopped."""
        self.stopping.set()
        for queue in self._waiting:
            queue.stop()
        for delayed in list(self._delayed.values()):
            delayed.stir()

    def do_enqueue(self, queue_name: str, redis_id: str, data: bytes) -> None:
        """Append a message. Called by dramatiq's enqueue; no script, so that producers are no workers."""
        self.link.run(self.appending(queue_name, redis_id, data))
        if (delayed := self._delayed.get(queue_name)) is not None:
            delayed.stir()

    def appending(self, queue_name: str, redis_id: str, data: bytes) -> list[Command]:
        """Return the commands that append a message: its text first, since a consumer that finds the id reads it."""
        key = self.key(queue_name)
        return [("HSET", f"{key}.msgs", redis_id, data), ("RPUSH", key, redis_id)]

    def withdraw(self, queue_name: str, redis_id: str) -> None:
        """Delete a message's text, so that a worker that fetches its id finds nothing to do."""
        self.link.run([("HDEL", f"{self.key(queue_name)}.msgs", redis_id)])

    def fetch(self, queue_name: str, count: int, wait_s: float, *, maintain: bool) -> list[bytes | None]:
        """Wait for a message and return up to `count`; None for a message whose text was flushed."""
        key = self.key(queue_name)
        wait: Command = ("BLMOVE", key, key, "LEFT", "LEFT", wait_s)
        take = self._command("fetch", queue_name, count, maintain=maintain)
        return cast("list[bytes | None]", self.link.run([wait, take], wait_s=wait_s)[-1])

    def beat(self, queue_name: str, count: int) -> list[bytes | None]:
        """Report that the process lives and serves a queue; return up to `count` of its delayed messages."""
        heartbeats = self.heartbeats.serving(queue_name.removesuffix(DELAYED), self.broker_id)
        take = self._command("fetch", queue_name, count, maintain=True)
        return cast("list[bytes | None]", self.link.run([*heartbeats, take])[-1])

    def leave(self, queue_name: str) -> None:
        """Report that the process no longer serves a queue."""
        self.heartbeats.leave(queue_name.removesuffix(DELAYED), self.broker_id)

    def unsettled(self, queue_name: str) -> dict[str, bytes | None]:
        """Return the queue's messages that this process has fetched and not settled, by redis id."""
        ids = self.link.run([("SMEMBERS", f"{self.namespace}:__acks__.{self.broker_id}.{queue_name}")])[0]
        if not ids:
            return {}
        texts = self.link.run([("HMGET", f"{self.key(queue_name)}.msgs", *ids)])[0]
        return {redis_id.decode(): text for redis_id, text in zip(ids, texts, strict=True)}

    def answer(self, key: str, body: bytes) -> None:
        """Keep an answer, to be sent with the acknowledgement of this thread's message."""
        self._left.__dict__.setdefault("answers", {})[key] = body

    def settle(self, command: str, queue_name: str, *redis_ids: str) -> None:
        """Send the answers kept by this thread's actor, and ack or nack messages, in one write."""
        answers = self._left.__dict__.pop("answers", {})
        if not answers:
            self.link.run([self._command(command, queue_name, redis_id) for redis_id in redis_ids])
            return
        acks, texts = f"{self.namespace}:__acks__.{self.broker_id}.{queue_name}", f"{self.key(queue_name)}.msgs"
        keys, bodies = answers.keys(), answers.values()
        script = ("EVALSHA", self._settle_sha, 2 + len(answers), acks, texts, *keys)
        self.link.run([(*script, ANSWER_KEPT_MS, *bodies, *redis_ids)])

    def dispatch(self, command: str, queue_name: str, *args: str) -> Any:
        """Run one of dramatiq's queue commands."""
        return self.link.run([self._command(command, queue_name, *args)])[0]

    def ring(self, actor: str, *args: str) -> bool:
        """Notify a doorbell's actor; False if an earlier notification is unanswered. Raises LinkDownError."""
        row = DOORBELLS[actor]
        redis_id = str(uuid4())
        bell = ":".join((actor, *args))
        message = Envelope(
            queue_name=row.queue,
            actor_name=actor,
            args=list(args),
            kwargs={"bell": bell},
            options={"redis_message_id": redis_id},
            message_id=redis_id,
            message_timestamp=self.link.now_ms(),
        )
        key = self.key(row.queue)
        keys = (self._bell_key(bell), key, f"{key}.msgs")
        limits = (row.patience_ms, WAITING_MAX, BELL_KEPT_MS)
        return bool(self.link.run([("EVALSHA", self._ring_sha, 3, *keys, *limits, redis_id, encode(message))])[0])

    def take_ring(self, bell: str) -> bool:
        """Return whether a notification is unanswered; the caller has to answer it. True if Redis is away."""
        try:
            return bool(self.link.run([("DEL", self._bell_key(bell))])[0])
        except LinkDownError:
            return True

    def backlog(self, queue_name: str) -> Backlog:
        """Return a queue's backlog. Raises LinkDownError."""
        key = self.key(queue_name)
        waiting, head = self.link.run([("LLEN", key), ("LINDEX", key, 0)])
        text = self.link.run([("HGET", f"{key}.msgs", head)])[0] if head else None
        if text is None:
            return Backlog(waiting=waiting, oldest_ms=0)
        rung_ms = WireEncoder().decode(text)["message_timestamp"]
        return Backlog(waiting=waiting, oldest_ms=max(0, self.link.now_ms() - rung_ms))

    def ping(self) -> None:
        """Check that Redis answers. Raises LinkDownError."""
        self.link.run([("PING",)])

    def key(self, queue_name: str) -> str:
        """Return the key of a queue's list of ids."""
        return f"{self.namespace}:{queue_name}"

    def _bell_key(self, bell: str) -> str:
        return f"{self.namespace}:bell:{bell}"

    def _command(self, command: str, queue_name: str, *args: str | int, maintain: bool = False) -> Command:
        """Return dramatiq's Lua for a queue command, with Redis's time: dramatiq would use each worker's own."""
        fixed = (self.broker_id, self.heartbeat_timeout, self.dead_message_ttl, int(maintain), UNPACK_MAX)
        now_ms = self.link.now_ms()
        return ("EVALSHA", self._dispatch_sha, 1, self.namespace, command, now_ms, queue_name, *fixed, *args)

    def _dispatch(self, command: str) -> Callable[..., Any]:
        """Run dramatiq's own do_<command> calls over the same connections."""
        return functools.partial(self.dispatch, command)


def make_broker(settings: Settings, *, client_name: str) -> SluiceBroker:
    """Return the process's broker. No connection is made before the first use."""
    dramatiq.set_encoder(WireEncoder())
    broker = SluiceBroker(
        url=settings.redis_url,
        namespace=settings.redis_namespace,
        secret_keys=settings.secret_keys,
        client_name=client_name,
    )
    after_commit.use(broker.ring)
    return broker

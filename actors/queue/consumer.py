"""Takes messages off one queue, blocking in Redis instead of polling.

Made by actors.queue.broker, one a queue and process.
BLMOVE of a queue's head onto itself changes nothing and waits until there is a head; dramatiq's own fetch follows it
in the same write. The answer to a waiting caller leaves in the same write as the acknowledgement.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog
from dramatiq import DecodeError, Message
from dramatiq.broker import Consumer, MessageProxy

from actors.queue.link import LinkDownError

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

log = structlog.get_logger()

# How soon an idle consumer looks whether Redis is back.
RECONNECT_PAUSE_S: Final = 0.25
# How often a consumer takes back what dead workers held. dramatiq's own lottery may take minutes.
MAINTENANCE_S: Final = 5.0
# How often a thread looks around while its worker is stopping.
STOPPING_LOOK_S: Final = 0.05
# An actor that this version does not have may exist in the version that is being deployed at the same time.
PASS_ON_DELAY_MS: Final = 1_000
PASS_ON_TIMES: Final = 30


class BlockingConsumer(Consumer):
    """One queue of one process. `__next__` runs on the queue's own thread, ack and nack on the workers'."""

    def __init__(self, broker: SluiceBroker, queue_name: str, *, prefetch: int, timeout_ms: int) -> None:
        self._broker = broker
        self._queue_name = queue_name
        self._prefetch = prefetch
        self._wait_s = timeout_ms / 1000
        self._fetched: deque[bytes | None] = deque()
        # Redis ids of the messages that workers have in hand.
        self._in_hand: set[str] = set()
        self._slot_freed = threading.Event()
        # Settled here, but Redis was away: (command, redis id), said again when it is back.
        self._unsaid: deque[tuple[str, str]] = deque()
        self._maintain_at = 0.0
        self._is_cut_off = False

    def __next__(self) -> MessageProxy | None:
        """Return the next message, or None after the wait (and whenever the caller should look around)."""
        if not self._fetched:
            try:
                self._refill()
            except LinkDownError as error:
                self._note_cut(error)
                time.sleep(RECONNECT_PAUSE_S)
                return None
        return self._hand_out()

    def ack(self, message: MessageProxy) -> None:
        """Remove a processed message, and send the answer that its actor left."""
        self._settle("ack", redis_id(message))

    def nack(self, message: MessageProxy) -> None:
        """Pass an unknown actor's message on to newer workers; put anything else among the dead letters."""
        if message.actor_name not in self._broker.actors and self._pass_on(message):
            self._settle("ack", redis_id(message))
        else:
            self._settle("nack", redis_id(message))

    def requeue(self, messages: Iterable[MessageProxy | Message[None]]) -> None:
        """Give back, at shutdown, the messages that no thread has begun."""
        ids = [redis_id(message) for message in messages]
        if ids:
            self._broker.dispatch("requeue", self._queue_name, *ids)

    def close(self) -> None:
        """Give back messages that were fetched and not handed out; dramatiq's own consumer would lose them."""
        unbegun = self._unbegun()
        self._fetched.clear()
        with suppress(LinkDownError):
            self.requeue(unbegun)
            self._say_unsaid()

    def _refill(self) -> None:
        """Fetch as many messages as workers are free, waiting for the first one."""
        self._slot_freed.clear()
        if self._broker.stopping.is_set():
            # Other processes take the messages of one that is stopping.
            time.sleep(STOPPING_LOOK_S)
            return
        room = self._prefetch - len(self._in_hand)
        if room <= 0:
            self._slot_freed.wait(self._wait_s)
            return
        self._say_unsaid()
        self._fetch(room)

    def _fetch(self, count: int) -> None:
        """Wait for a message and take up to `count`."""
        # Redis serves the client that has blocked longest. Without a varying wait, a passed-on message would reach the
        # same worker each time it comes round.
        wait_s = self._wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        self._fetched.extend(self._broker.fetch(self._queue_name, count, wait_s, maintain=self._is_due()))
        self._is_cut_off = False

    def _unbegun(self) -> list[Message[None]]:
        return [message for data in self._fetched if (message := decode(data, self._queue_name)) is not None]

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now < self._maintain_at:
            return False
        self._maintain_at = now + MAINTENANCE_S
        return True

    def _hand_out(self) -> MessageProxy | None:
        if not self._fetched:
            return None
        message = decode(self._fetched.popleft(), self._queue_name)
        if message is None:
            with suppress(LinkDownError):
                self._bury_undecodable()
            return None
        self._in_hand.add(redis_id(message))
        return MessageProxy(message)

    def _pass_on(self, message: MessageProxy) -> bool:
        times = message.options.get("passed_on", 0)
        if not isinstance(times, int) or times >= PASS_ON_TIMES:
            return False
        try:
            self._broker.enqueue(message.copy(options={"passed_on": times + 1}), delay=PASS_ON_DELAY_MS)
        except LinkDownError:
            return False
        return True

    def _settle(self, command: str, *redis_ids: str) -> None:
        try:
            self._broker.settle(command, self._queue_name, *redis_ids)
        except LinkDownError:
            # The work is done and committed. A worker must not sit out the outage for the sake of a receipt.
            self._unsaid.extend((command, each) for each in redis_ids)
        finally:
            self._in_hand.difference_update(redis_ids)
            self._slot_freed.set()

    def _say_unsaid(self) -> None:
        while self._unsaid:
            command, settled = self._unsaid[0]
            self._broker.dispatch(command, self._queue_name, settled)
            self._unsaid.popleft()

    def _bury_undecodable(self) -> None:
        """Move unreadable messages to the dead letters. Fetching names no ids, so look through all held ones."""
        for message_id, data in self._broker.unsettled(self._queue_name).items():
            if decode(data, self._queue_name) is None:
                log.error("queue.unreadable_message", queue=self._queue_name, redis_id=message_id)
                self._broker.dispatch("nack" if data else "ack", self._queue_name, message_id)

    def _note_cut(self, error: LinkDownError) -> None:
        if not self._is_cut_off:
            log.warning("queue.redis_away", queue=self._queue_name, error=str(error))
        self._is_cut_off = True


def redis_id(message: Message[None] | MessageProxy) -> str:
    """Return the id under which Redis keeps a message."""
    return str(message.options["redis_message_id"])


def decode(data: bytes | None, queue_name: str) -> Message[None] | None:
    """Return a message that can be worked on and acknowledged, or None for anything else, flushed data included."""
    if data is None:
        return None
    try:
        message: Message[None] = Message.decode(data)
    except DecodeError:
        return None
    # A message that names another queue would end the worker thread that takes it.
    is_sound = message.queue_name == queue_name and isinstance(message.options.get("redis_message_id"), str)
    return message if is_sound else None

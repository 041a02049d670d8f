"""Lets the worker threads of an awaited queue fetch for themselves, and gathers calls that wait together.

A process that serves one awaited queue alone (`-Q invoices`) works like this:

- One thread at a time waits in Redis, and works itself on the message that it finds; the next thread then waits there.
  Otherwise a fetching thread would hand each call over to a working one.
- Some actors can answer several calls in one step, at a lower cost for each: those declared with `together`. Their
  waiting calls, up to GATHER_MAX, are taken as one message, a Gathering.
- While a thread works on such calls, no other thread fetches: calls that arrive meanwhile form the next gathering, and
  its commit carries more. After PATIENCE_S the others stop waiting, since that thread may be waiting for a lock.
- A call that its gathering left unanswered, for any reason, is then run alone, by any thread, as if it had never been
  in one. So a bad call cannot harm its neighbours.

Used by actors.queue.broker and actors.queue.call_actors.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, PriorityQueue
from typing import TYPE_CHECKING, Any, Final

from dramatiq import Message
from dramatiq.broker import MessageProxy

from actors.queue.consumer import STOPPING_LOOK_S, BlockingConsumer, decode, redis_id

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

# More calls in one statement bring no gain.
GATHER_MAX: Final = 16
PATIENCE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Gathering:
    """Calls of one actor that a thread has taken together; the actor adds each finished one to `settled`."""

    messages: tuple[Message[None], ...]
    # The redis ids of the finished calls.
    settled: set[str] = field(default_factory=set)


class PulledConsumer(BlockingConsumer):
    """One awaited queue of one process: `pull` runs on the workers' threads, `__next__` on the queue's own."""

    def __init__(self, broker: SluiceBroker, queue_name: str, *, prefetch: int, timeout_ms: int) -> None:
        super().__init__(broker, queue_name, prefetch=prefetch, timeout_ms=timeout_ms)
        # Calls that a gathering left unanswered.
        self._alone: deque[Message[None]] = deque()

    def __next__(self) -> None:
        """Wait for the end of the worker, whose threads fetch for themselves."""
        self._broker.stopping.wait()
        time.sleep(STOPPING_LOOK_S)

    @property
    def has_left_over(self) -> bool:
        """Return whether calls wait here to be run alone."""
        return bool(self._alone)

    def take_left_over(self) -> MessageProxy | None:
        """Return the next call to run alone, if there is one."""
        with suppress(IndexError):
            return MessageProxy(self._alone.popleft())
        return None

    def pull(self) -> MessageProxy | None:
        """Return the next message or gathering, or None after the wait. Called by one thread at a time."""
        first = super().__next__()
        if first is None or first.actor_name in self._broker.gathered_actors:
            return first and self._gather(first)
        if first.actor_name in self._broker.actors:
            return first
        # As dramatiq's fetching thread does for an unknown actor.
        first.fail()
        self.nack(first)
        return None

    def _refill(self) -> None:
        self._say_unsaid()
        self._fetch(GATHER_MAX)

    def _gather(self, first: MessageProxy) -> MessageProxy:
        """Gather the message with its actor's other fetched messages."""
        messages, others = [first._message], deque[bytes | None]()  # noqa: SLF001 - a proxy hides it
        for data in self._fetched:
            message = decode(data, self._queue_name)
            if message is not None and message.actor_name == first.actor_name:
                messages.append(message)
            else:
                others.append(data)
        self._fetched = others
        return first if len(messages) == 1 else as_one(Gathering(tuple(messages)))

    def ack(self, message: MessageProxy) -> None:
        """Remove the processed messages, and send the answers that their actor left."""
        gathering = gathering_of(message.kwargs)
        if gathering is None:
            super().ack(message)
            return
        self._alone.extend(one for one in gathering.messages if redis_id(one) not in gathering.settled)
        if gathering.settled:
            self._settle("ack", *gathering.settled)

    def _unbegun(self) -> list[Message[None]]:
        return [*self._alone, *super()._unbegun()]


def as_one(gathering: Gathering) -> MessageProxy:
    """Return a gathering as the message that dramatiq runs its actor for."""
    first = gathering.messages[0]
    arguments = {"gathering": gathering}
    return MessageProxy(
        Message(first.queue_name, first.actor_name, (), arguments, {"redis_message_id": redis_id(first)})
    )


def gathering_of(arguments: Mapping[str, Any]) -> Gathering | None:
    """Return the gathering in a message's arguments, or None. No message from Redis can contain one."""
    gathering = arguments.get("gathering")
    return gathering if isinstance(gathering, Gathering) else None


@dataclass(frozen=True, slots=True)
class _Taken:
    """An entry as dramatiq's worker expects it from its queue."""

    message: MessageProxy


class PullingQueue(PriorityQueue[Any]):
    """Takes the place of dramatiq's queue between its fetching and its working threads."""

    def __init__(self, broker: SluiceBroker) -> None:
        super().__init__()
        self._broker = broker
        self._changed = threading.Condition()
        self._is_pulling = False
        self._watching = 0
        # When each thread that works on gatherable calls began, by thread id.
        self._gathering_since: dict[int, float] = {}
        self.consumer: PulledConsumer | None = None
        self._is_stopping = False

    def stop(self) -> None:
        """Stop threads from taking messages, and wake those that wait."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def attach(self, consumer: PulledConsumer) -> PulledConsumer:
        """Pull from this consumer from now on."""
        with self._changed:
            self.consumer = consumer
            self._changed.notify_all()
        return consumer

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ARG002, FBT001, FBT002 - queue's own
        """Return a message. Raises Empty after a pull that found none, once the worker stops, and if not `block`.

        Threads wait without end for their turn to pull; dramatiq's timeout, by which threads notice their end, is
        replaced by stop().
        """
        if self.queue or not block:
            return super().get(block=False)
        message = self._turn() or self._pull()
        if message is None:
            raise Empty
        with self.mutex:
            self.unfinished_tasks += 1
        return _Taken(message)

    def task_done(self) -> None:
        """Note that this thread's message is settled."""
        with self._changed:
            self._gathering_since.pop(threading.get_ident(), None)
            if self.consumer is not None and self.consumer.has_left_over:
                self._changed.notify_all()
        super().task_done()

    def _turn(self) -> MessageProxy | None:
        """Return a call to run alone, or None if it is this thread's turn to pull.

        Raises Empty once the worker stops.
        """
        with self._changed:
            while not self._is_stopping:
                if self.consumer is not None and (message := self.consumer.take_left_over()) is not None:
                    # The notification may have been for pulling.
                    self._changed.notify()
                    return message
                now, patient_until = time.monotonic(), self._patient_until()
                if self.consumer is not None and not self._is_pulling and now >= patient_until:
                    self._is_pulling = True
                    return None
                self._wait(now, watches_until=None if self._is_pulling else patient_until)
        # The thread asks again until it is stopped, which is about to happen.
        time.sleep(STOPPING_LOOK_S)
        raise Empty

    def _wait(self, now: float, *, watches_until: float | None) -> None:
        """Wait for a change, or until `watches_until` for a thread that watches the running gathering's patience."""
        if watches_until is None or watches_until <= now:
            self._changed.wait()
            return
        self._watching += 1
        self._changed.wait(watches_until - now)
        self._watching -= 1

    def _patient_until(self) -> float:
        """Return until when other threads wait for the running gatherings; in the past if none runs."""
        return max(self._gathering_since.values(), default=-math.inf) + PATIENCE_S

    def _pull(self) -> MessageProxy | None:
        message, is_done = None, False
        try:
            message = self.consumer.pull() if self.consumer is not None else None
            is_done = True
        finally:
            with self._changed:
                self._is_pulling = False
                if message is not None:
                    self._note(message)
                elif not is_done:
                    # The exception ends this thread: another one pulls.
                    self._changed.notify()
        return message

    def _note(self, message: MessageProxy) -> None:
        """Let another thread pull: at once, or once this one's gathering takes too long."""
        is_gathered = message.actor_name in self._broker.gathered_actors
        if is_gathered:
            self._gathering_since[threading.get_ident()] = time.monotonic()
        if not (is_gathered and self._watching):
            self._changed.notify()

"""Has the worker threads of an awaited queue fetch for themselves, and take together what waits together.

A process that serves one awaited queue alone (`-Q invoices`) works like this:

- One thread at a time waits in Redis, and works on what it finds there itself; the next one takes its place. Without
  this, a fetching thread would hand each call over to a working one.
- Some actors can answer several calls in one step, for less than each by itself costs: those that were declared with
  `together`. Their calls that wait, up to GATHER_MAX, are taken as one message, a Gathering.
- Whoever works on such calls keeps its place meanwhile: what comes in the meantime is the next gathering, and its
  commit carries more. After PATIENCE_S, since it may be waiting for a lock, the others stop waiting for it.
- A call that its gathering left unanswered, for whatever reason, is then run alone, by any thread, as if it had never
  been in one. So nothing that a call brings with it can harm its neighbours.

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

# More in one statement bring nothing.
GATHER_MAX: Final = 16
PATIENCE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Gathering:
    """Calls of one actor that a thread has taken together; whoever is done with one says so."""

    messages: tuple[Message[None], ...]
    # The redis ids of those that nothing is left to be done for.
    settled: set[str] = field(default_factory=set)


class PulledConsumer(BlockingConsumer):
    """One awaited queue of one process: `pull` runs on the workers' threads, `__next__` on the queue's own."""

    def __init__(self, broker: SluiceBroker, queue_name: str, *, prefetch: int, timeout_ms: int) -> None:
        super().__init__(broker, queue_name, prefetch=prefetch, timeout_ms=timeout_ms)
        # What a gathering left unanswered.
        self._alone: deque[Message[None]] = deque()

    def __next__(self) -> None:
        """Wait for the end of the worker, whose threads fetch for themselves."""
        self._broker.stopping.wait()
        time.sleep(STOPPING_LOOK_S)

    @property
    def has_left_over(self) -> bool:
        """Tell whether there are calls that wait here to be run alone."""
        return bool(self._alone)

    def take_left_over(self) -> MessageProxy | None:
        """Return a call that is to be run alone, if there is one."""
        with suppress(IndexError):
            return MessageProxy(self._alone.popleft())
        return None

    def pull(self) -> MessageProxy | None:
        """Return the next message, or a gathering as one, or None after the wait. By one thread at a time."""
        first = super().__next__()
        if first is None or first.actor_name in self._broker.gathered_actors:
            return first and self._gather(first)
        if first.actor_name in self._broker.actors:
            return first
        # What dramatiq's fetching thread would do.
        first.fail()
        self.nack(first)
        return None

    def _refill(self) -> None:
        self._say_unsaid()
        self._fetch(GATHER_MAX)

    def _gather(self, first: MessageProxy) -> MessageProxy:
        """Return the message with those of its actor that have been fetched beside it."""
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
        """Remove what was processed, and send the answers that its actor left."""
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
    """Return the gathering that a message with these arguments stands for. Nothing from Redis can look like one."""
    found = arguments.get("gathering")
    return found if isinstance(found, Gathering) else None


@dataclass(frozen=True, slots=True)
class _Taken:
    """What dramatiq's worker expects of its queue."""

    message: MessageProxy


class PullingQueue(PriorityQueue[Any]):
    """Takes the place of dramatiq's queue between its fetching and its working threads."""

    def __init__(self, broker: SluiceBroker) -> None:
        super().__init__()
        self._broker = broker
        self._changed = threading.Condition()
        self._is_pulling = False
        self._watching = 0
        # When each thread that works on calls which can be gathered began.
        self._gathering_since: dict[int, float] = {}
        self.consumer: PulledConsumer | None = None
        self._is_stopping = False

    def stop(self) -> None:
        """Let threads take nothing more, and wake those that wait."""
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

        Threads wait for their turn to pull without end; dramatiq's timeout is for noticing theirs, which stop() does.
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
        """Return a call that is to be run alone, or None when it is this thread's turn to pull.

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
        """Wait for a change; a thread that watches how long a gathering takes need not hear of the next one."""
        if watches_until is None or watches_until <= now:
            self._changed.wait()
            return
        self._watching += 1
        self._changed.wait(watches_until - now)
        self._watching -= 1

    def _patient_until(self) -> float:
        """Return the end of patience with those who work on a gathering; it lies behind us when nobody does."""
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
                    # What was raised ends this thread: another one pulls.
                    self._changed.notify()
        return message

    def _note(self, message: MessageProxy) -> None:
        """Let another thread pull: at once, or when this one has not come back in time."""
        is_gathered = message.actor_name in self._broker.gathered_actors
        if is_gathered:
            self._gathering_since[threading.get_ident()] = time.monotonic()
        if not (is_gathered and self._watching):
            self._changed.notify()

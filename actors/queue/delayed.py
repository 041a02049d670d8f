"""Fetches a queue's delayed messages, and renews the heartbeats of the process in the same write.

Made by actors.queue.broker, one a queue and process. dramatiq runs it on a thread of its own, so that the process lives
on in Redis while all its working threads are busy. Delayed messages are rare (see BlockingConsumer.nack): they have no
connection that waits for them. A consumer looks for them at each beat, and at once if this process has delayed one.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from actors.queue.consumer import STOPPING_LOOK_S, BlockingConsumer
from actors.queue.link import LinkDownError

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

# Far below the silence after which a process counts as gone, for monitoring and for other workers.
BEAT_S: Final = 5.0
# How soon a consumer looks again at the delayed messages that it holds, which may be due.
DELAYED_LOOK_S: Final = 1.0


class DelayedConsumer(BlockingConsumer):
    """A consumer of one queue's delayed messages. `__next__` runs on the queue's own thread."""

    def __init__(self, broker: SluiceBroker, queue_name: str, *, prefetch: int, timeout_ms: int) -> None:
        super().__init__(broker, queue_name, prefetch=prefetch, timeout_ms=timeout_ms)
        self._is_first = True
        self._beat_at = 0.0
        self._stirred = threading.Event()

    def stir(self) -> None:
        """Wake the thread, so that it looks for messages now."""
        self._stirred.set()

    def _refill(self) -> None:
        """Wait for the next beat, then give a sign of life and fetch."""
        pause_s = self._beat_at - time.monotonic()
        if pause_s > 0:
            pause_s = min(pause_s, DELAYED_LOOK_S) if self._in_hand else pause_s
            is_stirred = self._stirred.wait(STOPPING_LOOK_S if self._broker.stopping.is_set() else pause_s)
            if not is_stirred and time.monotonic() < self._beat_at:
                return
        self._stirred.clear()
        if self._is_first:
            self._take_back()
        self._say_unsaid()
        self._fetched.extend(self._broker.beat(self._queue_name, max(0, self._prefetch - len(self._in_hand))))
        self._is_first = self._is_cut_off = False
        self._beat_at = time.monotonic() + BEAT_S

    def close(self) -> None:
        """Give back the fetched messages, and report that the process no longer serves the queue."""
        super().close()
        with suppress(LinkDownError):
            self._broker.leave(self._queue_name)

    def _take_back(self) -> None:
        """Requeue messages that this process's earlier consumer held when it lost Redis: dramatiq forgot them."""
        if messages := self._broker.unsettled(self._queue_name):
            self._broker.dispatch("requeue", self._queue_name, *messages)

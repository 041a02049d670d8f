"""Surrounds every message: log context, counts, and threads that leave no connection behind.

Used by actors.queue.broker.
Nothing is retried here: calls are answered or given up, and the scheduler notifies doorbells again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import structlog
from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy
from dramatiq.middleware import SkipMessage
from dramatiq.worker import Worker, WorkerThread
from structlog.contextvars import bind_contextvars, clear_contextvars

from actors.queue.gathering import gathering_of
from core.logs import counters
from models.db import base

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

# ruff: noqa: ARG002 - dramatiq gives every hook the broker and its subject.

log = structlog.get_logger()


UNKNOWN: Final = "(unknown)"


class _Message(threading.local):
    """The thread's message: when its actor began, and whether it ran into a fault that it reported itself."""

    began_at = 0.0
    is_failed = False


_message: Final = _Message()


def note_failure() -> None:
    """Count the thread's message as failed, though its actor ends as usual."""
    _message.is_failed = True


class Entrance(Middleware):
    """Keeps an actor to its own queue, counts its messages, and adds the actor and its HTTP request to log lines.

    One middleware for all: each middleware costs each message a dozen calls.
    """

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        """Bind the log context. Raises SkipMessage for a message in another queue than its actor's."""
        actor = broker.actors.get(message.actor_name)
        # Dramatiq runs an actor from any queue that names it. The consumer passes on an actor that is unknown here.
        if actor is not None and actor.queue_name != message.queue_name:
            log.error("queue.misplaced", actor=message.actor_name, queue=message.queue_name)
            raise SkipMessage
        _message.began_at, _message.is_failed = time.monotonic(), False
        request_id = message.kwargs.get("request_id")
        bind_contextvars(actor=message.actor_name, **({"request_id": request_id} if request_id else {}))

    def after_process_message(
        self,
        broker: Broker,
        message: MessageProxy,
        *,
        result: Any | None = None,
        exception: BaseException | None = None,
    ) -> None:
        """Count the message, clear the log context, and release the connection to PostgreSQL for other threads."""
        _count(message, is_failed=_message.is_failed or exception is not None)
        clear_contextvars()
        base.release()

    def after_nack(self, broker: Broker, message: MessageProxy) -> None:
        """Count a message that was put among the dead letters, or passed on."""
        # Anything may be written into a queue, and a label is kept for good.
        actor = message.actor_name if message.actor_name in broker.actors else UNKNOWN
        counters.count("dramatiq_message_rejects", message.queue_name, actor)


def _count(message: MessageProxy, *, is_failed: bool) -> None:
    """Count a message by dramatiq's names; a gathering as the messages that were settled together."""
    labels, gathering = (message.queue_name, message.actor_name), gathering_of(message.kwargs)
    times = 1 if gathering is None else len(gathering.settled)
    took_ms = round((time.monotonic() - _message.began_at) * 1000)
    counters.count("dramatiq_messages", *labels, by=times)
    counters.observe("dramatiq_message_duration_milliseconds", *labels, parts=took_ms, times=times)
    if is_failed:
        counters.count("dramatiq_message_errors", *labels)


class ThreadKeeping(Middleware):
    """Prepares a worker, ends its waits when it stops, and closes its connections when it has."""

    def __init__(self, broker: SluiceBroker) -> None:
        self._broker = broker

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Limit prefetching to the number of threads: a message that waits here could run in another process."""
        worker.queue_prefetch = worker.worker_threads
        self._broker.let_pull(worker)

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Wake the threads, which are stopped next."""
        self._broker.stop_waiting()

    def before_worker_thread_shutdown(self, broker: Broker, thread: WorkerThread) -> None:
        """Close the thread's connection to PostgreSQL."""
        base.close()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        """Close the connections to Redis, which the threads shared."""
        self._broker.link.close()

"""Surrounds every message: log context, and threads that leave no connection behind.

Used by actors.queue.broker.
Nothing is retried here: calls are answered or given up, and the scheduler notifies doorbells again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy
from dramatiq.middleware import SkipMessage
from dramatiq.worker import Worker, WorkerThread
from structlog.contextvars import bind_contextvars, clear_contextvars

from models.db import base

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker

# ruff: noqa: ARG002 - dramatiq gives every hook the broker and its subject.

log = structlog.get_logger()


class Entrance(Middleware):
    """Keeps an actor to its own queue, and adds the actor and its HTTP request to log lines.

    One middleware for both: each middleware costs each message a dozen calls.
    """

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        """Bind the log context. Raises SkipMessage for a message in another queue than its actor's."""
        actor = broker.actors.get(message.actor_name)
        # Dramatiq runs an actor from any queue that names it. The consumer passes on an actor that is unknown here.
        if actor is not None and actor.queue_name != message.queue_name:
            log.error("queue.misplaced", actor=message.actor_name, queue=message.queue_name)
            raise SkipMessage
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
        """Clear the log context, and release the connection to PostgreSQL for other threads."""
        clear_contextvars()
        base.release()


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

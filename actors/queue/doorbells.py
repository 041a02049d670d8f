"""Gives actors their doorbells: `@doorbell` declares one, `ring` notifies it. Imported via actors.queue.broker."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.queue.registry import Registration, register
from actors.queue.schedule import DOORBELLS, Arguments
from models.db import after_commit

if TYPE_CHECKING:
    from actors.queue.broker import SluiceBroker


def ring(actor: str, *args: str) -> None:
    """Notify an actor, after the commit if a transaction is open. Raises ValueError for a name without a doorbell."""
    if actor not in DOORBELLS:
        raise ValueError(f"{actor!r} is no doorbell")
    after_commit.ring(actor, *args)


def doorbell(
    *, queue: str, arguments: Arguments | None = None, **options: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function the actor of the doorbell with its name, whose row is in actors.queue.schedule.

    Raises ValueError if the row is missing or has another queue or other arguments.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__
        row = DOORBELLS.get(name)
        if row is None or (row.queue, row.for_each) != (queue, arguments):
            raise ValueError(f"actors.queue.schedule has no row for the doorbell {name!r} on {queue!r} ({arguments})")
        bind = functools.partial(_answering, function)
        register(Registration(name=name, queue=queue, bind=bind, options=options))
        return function

    return decorate


def _answering(function: Callable[..., None], broker: SluiceBroker) -> Callable[..., None]:
    arity = len(inspect.signature(function, follow_wrapped=False).parameters)

    def answer(*args: str, bell: str | None = None, **_unknown: object) -> None:
        """Run the actor unless an earlier run answered this notification. A newer version may send more arguments."""
        if bell is None or broker.take_ring(bell):
            function(*args[:arity])

    return answer

"""Notifies actors of new work after the commit, when other processes can find it, and counts it then.

Models name the actor, which they may not import; the process sets how to notify it (actors.queue.doorbells). A
notification is a hint: any may be lost, since the scheduler's find the same work.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum
from time import monotonic
from typing import Final

import structlog

from core.logs import counters

log = structlog.get_logger()

# A notification that fails after this long shows that Redis is silent. None is sent for QUIET_S then, so that a step of
# many transactions waits once.
SILENT_S: Final = 0.5
QUIET_S: Final = 10.0


class Bell(StrEnum):
    """The actors that look for work in rows of models."""

    BROADCAST = "broadcast"
    DELIVER_EMAILS = "deliver_emails"
    DELIVER_WEBHOOKS = "deliver_webhooks"
    RESUME_SIGNING = "resume_signing"
    RUN_BATCHES = "run_batches"
    SEEK_DEPARTURES = "seek_departures"


class _Process:
    send: Callable[..., object] | None = None
    quiet_until: float = 0.0


class _Kept(threading.local):
    """The notifications, counts and steps of the thread's open transaction, or part of one, if it succeeds.

    None outside.
    """

    rings: dict[tuple[str, ...], None] | None = None
    counts: dict[tuple[str, ...], int] | None = None
    steps: list[Callable[[], object]] | None = None


_kept = _Kept()


def use(send: Callable[..., object] | None) -> None:
    """Set send(actor, *arguments) as the way to notify actors, in the whole process; None notifies no one."""
    _Process.send, _Process.quiet_until = send, 0.0


def ring(actor: str, *args: str) -> None:
    """Notify an actor: inside a transaction after its commit, once for equal arguments; else at once."""
    if _kept.rings is not None:
        _kept.rings[actor, *args] = None
    elif _Process.send is not None and (began := monotonic()) >= _Process.quiet_until:
        try:
            _Process.send(actor, *args)
        except Exception as error:  # noqa: BLE001 - what was committed stays done, and will be found
            log.info("doorbell.not_rung", doorbell=actor, error=repr(error))
            if (now := monotonic()) - began >= SILENT_S:
                _Process.quiet_until = now + QUIET_S


def count(family: str, *labels: str, by: int = 1) -> None:
    """Add to a counter of core.logs.counters: inside a transaction after its commit, else at once."""
    if _kept.counts is not None:
        _kept.counts[family, *labels] = _kept.counts.get((family, *labels), 0) + by
    else:
        counters.count(family, *labels, by=by)


def then(step: Callable[[], object]) -> None:
    """Run a step: inside a transaction after its commit, else at once. For log events: a rollback is no event."""
    if _kept.steps is not None:
        _kept.steps.append(step)
    else:
        step()


@contextlib.contextmanager
def kept_back() -> Iterator[None]:
    """Hold back the notifications, counts and steps made inside until it succeeds; an exception drops them.

    Called by models.db.base.
    """
    around = _kept.rings, _kept.counts, _kept.steps
    _kept.rings, _kept.counts, _kept.steps = {}, {}, []
    try:
        yield
    finally:
        rings, counts, steps = _kept.rings, _kept.counts, _kept.steps
        _kept.rings, _kept.counts, _kept.steps = around
    for step in steps:
        then(step)
    for key, number in counts.items():
        count(*key, by=number)
    for bell in rings:
        ring(*bell)

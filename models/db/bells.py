"""Rings doorbells after the commit: a transaction tells of what it gives to do once others can find it.

Models name the actor that they may not import; the process says how one is rung (actors.queue.doorbells). A ring is a
hint: any may be lost, since the scheduler's rings find the same work.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from enum import StrEnum
from time import monotonic
from typing import Final

import structlog

log = structlog.get_logger()

# A step of many transactions waits once, not for each, where Redis is silent: what took so long and failed is not
# tried again for a while.
SILENT_S: Final = 0.5
QUIET_S: Final = 10.0


class Bell(StrEnum):
    """The actors that look for what models write."""

    BROADCAST = "broadcast"
    DELIVER_EMAILS = "deliver_emails"
    DELIVER_WEBHOOKS = "deliver_webhooks"
    RUN_BATCHES = "run_batches"


class _Process:
    send: Callable[..., object] | None = None
    quiet_until: float = 0.0


class _Kept(threading.local):
    """What the thread's open transaction, or part of one, rings when it ends well; None outside of one."""

    rings: dict[tuple[str, ...], None] | None = None


_kept = _Kept()


def use(send: Callable[..., object] | None) -> None:
    """Ring by send(actor, *arguments) from now on, in the whole process; nobody without it."""
    _Process.send, _Process.quiet_until = send, 0.0


def ring(actor: str, *args: str) -> None:
    """Ring a doorbell: after the commit inside a transaction, of which equal rings go out once; else at once."""
    if _kept.rings is not None:
        _kept.rings[actor, *args] = None
    elif _Process.send is not None and (began := monotonic()) >= _Process.quiet_until:
        try:
            _Process.send(actor, *args)
        except Exception as error:  # noqa: BLE001 - what was committed stays done, and will be found
            log.info("doorbell.not_rung", doorbell=actor, error=repr(error))
            if (now := monotonic()) - began >= SILENT_S:
                _Process.quiet_until = now + QUIET_S


@contextlib.contextmanager
def kept_back() -> Iterator[None]:
    """Keep back what is rung inside until that ended well; what is raised drops it. Called by models.db.base."""
    around, _kept.rings = _kept.rings, {}
    try:
        yield
    finally:
        rings, _kept.rings = _kept.rings, around
    for bell in rings:
        ring(*bell)

"""Locks that live as long as a session or a step, kept by PostgreSQL. Used through actors.queue.broker."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from models.db import base

if TYPE_CHECKING:
    from collections.abc import Iterator

# Keeps these apart from the advisory locks of idempotency keys (1) and orders (2).
SINGLE_FLIGHT_SEED: Final = 3
IDEMPOTENCY_SEED: Final = 1


@contextlib.contextmanager
def single_flight(name: str, *, seed: int = SINGLE_FLIGHT_SEED) -> Iterator[bool]:
    """Try to be the only one in the whole gateway that does `name`; yields whether it is. Never waits.

    A lock of the session, not of a transaction, since what it guards may use the network. A process that dies, or loses
    its connection, sets it free; whatever it guards must therefore also move its rows by compare-and-swap.
    """
    found = base.one("SELECT pg_try_advisory_lock(hashtextextended(%s, %s))", (name, seed))
    is_mine = bool(found and found[0])
    try:
        yield is_mine
    finally:
        if is_mine:
            _unlock(name, seed)


def try_turn(name: str) -> bool:
    """Try to be the only one in the whole gateway that does `name`, until the caller's transaction ends.

    Never waits. It is the lock of single_flight().
    """
    found = base.one("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", (name, SINGLE_FLIGHT_SEED))
    return bool(found and found[0])


def _unlock(name: str, seed: int) -> None:
    try:
        base.one("SELECT pg_advisory_unlock(hashtextextended(%s, %s))", (name, seed))
    except base.StoreUnavailableError:
        # The session is gone, and its lock with it.
        base.close()
    except Exception:
        # The session may hold the lock still: only its end frees it.
        base.close()
        raise

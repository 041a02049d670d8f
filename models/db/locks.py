"""Takes locks that live as long as a session or a step, kept by PostgreSQL. Used through actors.queue.broker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Literal
from uuid import UUID

from models.db import base


class LockSeed(IntEnum):
    """What a name is hashed with, so that one name of two kinds is two locks. Functions of migrations know 1 and 2."""

    ADDRESSES = 0
    IDEMPOTENCY_KEY = 1
    INVOICE_ORDER = 2
    SINGLE_FLIGHT = 3
    MONEY_OUT_ORDER = 4
    SIGNER_LIMITS = 5
    NOTICES = 6
    COLD_BOOKS = 7
    EMAILS = 8


@contextlib.contextmanager
def single_flight(name: str, *, seed: LockSeed = LockSeed.SINGLE_FLIGHT) -> Iterator[bool]:
    """Try to take the gateway-wide lock `name`; yields True if it was free. Never waits.

    A lock of the session, not of a transaction, since the guarded work may use the network. It is released if the
    process dies or loses its connection; the guarded work must therefore also change its rows by compare-and-swap.
    """
    is_mine = base.is_true("SELECT pg_try_advisory_lock(hashtextextended(%s, %s))", (name, seed))
    try:
        yield is_mine
    finally:
        if is_mine:
            _unlock(name, seed)


def wait_turn(name: str, *, seed: LockSeed) -> None:
    """Wait until `name` is free, and hold it until the caller's transaction ends."""
    base.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", (name, seed))


def wait_order(kind: Literal["payout", "transfer"], merchant_id: UUID, order_id: str) -> None:
    """Make others that create this kind under an order_id wait until the caller's transaction ends."""
    wait_turn(f"{kind}:{merchant_id}:{order_id}", seed=LockSeed.MONEY_OUT_ORDER)


def try_turn(name: str, *, seed: LockSeed = LockSeed.SINGLE_FLIGHT) -> bool:
    """Try to be the only one in the whole gateway that holds `name`, until the caller's transaction ends.

    Never waits. By default it is the lock of single_flight().
    """
    return base.is_true("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", (name, seed))


def _unlock(name: str, seed: LockSeed) -> None:
    try:
        base.one("SELECT pg_advisory_unlock(hashtextextended(%s, %s))", (name, seed))
    except base.StoreUnavailableError:
        # The session is gone, and its lock with it.
        base.close()
    except Exception:
        # The session may hold the lock still: only its end frees it.
        base.close()
        raise

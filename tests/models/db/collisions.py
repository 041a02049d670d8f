"""Runs work at the same time, so that it collides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from models.db import base
from models.db.base import one

T = TypeVar("T")


def wait_until_somebody_waits(limit_s: float = 60.0) -> None:
    """Return once a session waits for a lock. Only this test may use the server meanwhile."""
    until = time.monotonic() + limit_s
    # Not pg_stat_activity, whose content is fixed for a whole transaction.
    while not one("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < until, "no session waits"
        time.sleep(0.01)


def at_once(times: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Run work in several threads that begin together; return results and exceptions in order."""
    barrier = threading.Barrier(times)

    def run(number: int) -> T | Exception:
        try:
            one("SELECT 1")  # connected before the start, so that they really collide
            barrier.wait(timeout=30)
            return work(number)
        except Exception as error:  # noqa: BLE001 - the caller judges them
            return error
        finally:
            base.close()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))

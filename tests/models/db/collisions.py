"""Runs work at the same time, so that it collides."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

from models.db import base
from models.db.base import one

P = ParamSpec("P")
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


class Crossing:
    """Lets two threads meet once: each waits after its first call of a wrapped function for the other's.

    One that waits for the other's lock cannot come: after a second the first goes on alone.
    """

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self._met = threading.local()
        self.is_met = False

    def after(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap a function that takes a lock."""

        @wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> T:
            result = function(*args, **kwargs)
            self._wait()
            return result

        return locked

    def _wait(self) -> None:
        if getattr(self._met, "is_over", False):
            return
        self._met.is_over = True
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(timeout=1)
            self.is_met = True


def cross(first: Callable[[], object], second: Callable[[], object]) -> list[object | Exception]:
    """Run two steps at once; return results and exceptions in order."""
    return at_once(2, lambda number: (first, second)[number]())

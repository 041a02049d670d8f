"""Bounds how long, and with how many questions, one step may bother a network's nodes.

Set by actors, spent by chains.net.json_rpc.
A step without a budget is bounded by each request's own timeout alone.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from chains.base import ProviderError


class BudgetSpentError(ProviderError):
    """The step has used up its time or its requests; it goes on at the next ring. No node is to blame."""


class _Budget:
    """Threads of one step may race on it; the worst is one question too many."""

    def __init__(self, seconds: float, requests: int) -> None:
        self.deadline = time.monotonic() + seconds
        self.requests = requests


_current: ContextVar[_Budget | None] = ContextVar("rpc_budget", default=None)


@contextmanager
def budget(*, seconds: float, requests: int) -> Iterator[None]:
    """Bound everything that is asked of any node inside the block."""
    token = _current.set(_Budget(seconds, requests))
    try:
        yield
    finally:
        _current.reset(token)


def take(timeout_s: float) -> float:
    """Pay for one request and return how long it may take. Raises BudgetSpentError."""
    found = _current.get()
    if found is None:
        return timeout_s
    check()
    found.requests -= 1
    return min(timeout_s, found.deadline - time.monotonic())


def check() -> None:
    """Raise BudgetSpentError if nothing is left: a request that it cut off is no provider's fault."""
    found = _current.get()
    if found is None:
        return
    if found.requests <= 0:
        raise BudgetSpentError("the step has asked enough")
    if time.monotonic() >= found.deadline:
        raise BudgetSpentError("the step has taken long enough")

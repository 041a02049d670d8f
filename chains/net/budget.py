"""Bounds how long, and with how many questions, one step may bother a network's nodes.

Set by actors, spent by chains.net.json_rpc.
A step without a budget is bounded by each request's own timeout alone.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from chains.base import ChainError, ProviderError
from chains.net.usage import SLOW_FROM_S, Usage

# A node whose slow calls took more than this share of a step's time is to blame if that time was not enough.
OVERRUN_SHARE: Final = 0.5


# The least that a call may take, however many nodes share what is left.
SHARE_MIN_S: Final = 1.0


class BudgetSpentError(ChainError):
    """The step has used up its time or its requests; it goes on at the next tick. No node is to blame."""


class PartSpentError(ProviderError):
    """A question has used up its part of the step's time; the rest is left for others."""


class _Budget:
    """Threads of one step may race on it; the worst is one question too many."""

    def __init__(self, seconds: float, requests: int) -> None:
        self.seconds, self.requests = seconds, requests
        self.deadline = time.monotonic() + seconds
        self.slow_s: dict[Usage, float] = {}

    def settle(self) -> None:
        """Blame the node that used up most of the time, if the time was not enough."""
        if time.monotonic() < self.deadline:
            return
        for usage, slow_s in self.slow_s.items():
            if slow_s > OVERRUN_SHARE * self.seconds:
                usage.note_overrun()


_current: ContextVar[_Budget | None] = ContextVar("rpc_budget", default=None)
_parts: ContextVar[int] = ContextVar("rpc_parts", default=1)
_unwaited: ContextVar[threading.Event | None] = ContextVar("rpc_unwaited", default=None)


@contextmanager
def budget(*, seconds: float, requests: int) -> Iterator[None]:
    """Bound everything that is asked of any node inside the block."""
    made = _Budget(seconds, requests)
    token = _current.set(made)
    try:
        yield
    finally:
        _current.reset(token)
        made.settle()


@contextmanager
def part(*, seconds: float, is_rest_enough: bool = False) -> Iterator[None]:
    """Bound the questions inside the `with` block to a part of the step's time. Raises PartSpentError if it is spent.

    Raises BudgetSpentError at once if the step has less time left, unless the rest of it is enough.
    """
    whole = _current.get()
    if whole is None:
        yield
        return
    check()
    left_s = whole.deadline - time.monotonic()
    if is_rest_enough:
        seconds = min(seconds, left_s)
    elif left_s < seconds:
        raise BudgetSpentError("the step has too little time left")
    made = _Budget(seconds, whole.requests)
    made.slow_s = whole.slow_s
    token = _current.set(made)
    try:
        yield
    except BudgetSpentError as error:
        if made.requests <= 0:
            raise
        raise PartSpentError(f"one question took more than {seconds:g} s") from error
    finally:
        _current.reset(token)
        whole.requests = made.requests


@contextmanager
def shared(parts: int) -> Iterator[None]:
    """Give each call inside the `with` block one of `parts` equal parts of the remaining time."""
    token = _parts.set(parts)
    try:
        yield
    finally:
        _parts.reset(token)


@contextmanager
def charged_until(unwaited: threading.Event) -> Iterator[None]:
    """Charge no call inside the block to the step that ends after the event: the step does not wait for it then."""
    token = _unwaited.set(unwaited)
    try:
        yield
    finally:
        _unwaited.reset(token)


def take(timeout_s: float) -> float:
    """Pay for one request and return how long it may take. Raises BudgetSpentError."""
    left = _current.get()
    if left is None:
        return timeout_s
    check()
    left.requests -= 1
    left_s = left.deadline - time.monotonic()
    return min(timeout_s, left_s, max(SHARE_MIN_S, left_s / _parts.get()))


def is_over() -> bool:
    """Return True if the step's time has run out."""
    left = _current.get()
    return left is not None and time.monotonic() >= left.deadline


def charge(usage: Usage, seconds: float) -> None:
    """Record the duration of one call against the step; quick calls are not held against their node."""
    left, unwaited = _current.get(), _unwaited.get()
    if left is not None and seconds >= SLOW_FROM_S and not (unwaited and unwaited.is_set()):
        left.slow_s[usage] = left.slow_s.get(usage, 0.0) + seconds


def check() -> None:
    """Raise BudgetSpentError if nothing is left: a request that it cut off is no provider's fault."""
    left = _current.get()
    if left is None:
        return
    if left.requests <= 0:
        raise BudgetSpentError("the step has asked enough")
    if time.monotonic() >= left.deadline:
        raise BudgetSpentError("the step has taken long enough")

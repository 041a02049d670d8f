"""Measures one node's latency by kind of question and method. Noted by chains.net.http, ranked by chains.net.providers.

A node may answer heads at once and blocks slowly, so latencies are compared only within a kind, method by method.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

from core.logs import counters

# A latency from this value on, and this many times the fastest node's, is slow.
SLOW_FROM_S: Final = 0.3
SLOW_FACTOR: Final = 4
# The age up to which a measured latency, or an overrun step, counts.
MEASURED_S: Final = 300.0
OVERRUN_S: Final = 60.0
# How long a silent node is left out while others answer; doubled by each further silence, answers in between or not:
# a node may answer small questions and let each large one wait.
SILENCE_S: Final = 5.0
SILENCE_MAX_S: Final = 60.0
SILENCE_FORGOTTEN_S: Final = 180.0
# A node that answered this recently is given its whole timeout, however little time a step has left.
ANSWERED_S: Final = 60.0
LATENCY_WEIGHT: Final = 0.3


class Kind(StrEnum):
    """Kinds of questions: a node's rank differs between them."""

    HEAD = "head"
    SMALL = "small"
    # Whole blocks, their receipts, and the logs of ranges.
    BLOCKS = "blocks"


class Usage:
    """The latencies of one node. Threads may race on them; the worst is a lost measurement."""

    def __init__(self, *owner: str) -> None:
        """Take the network's code and the provider's number, if its requests are counted."""
        self._owner = owner
        # (latency_s, measured_at) by kind and method; the methods are those of our own code, so they are few.
        self._measured: dict[tuple[Kind, str], tuple[float, float]] = {}
        # Calls that have not ended: kind, method, and when they began.
        self._under_way: dict[object, tuple[Kind, str, float]] = {}
        self._overran_at = float("-inf")
        self.is_silent = False  # Its last call brought no answer for long.
        self._silences = 0
        self._silent_at = float("-inf")
        self._silent_until = 0.0
        self.answered_at = float("-inf")

    def count_request(self) -> None:
        """Count a request to the node, for the metrics."""
        if self._owner:
            counters.count("sluice_provider_requests", *self._owner)

    def count_failure(self) -> None:
        """Count a question that the node failed to answer, for the metrics."""
        if self._owner:
            counters.count("sluice_provider_failures", *self._owner)

    @property
    def is_left_out(self) -> bool:
        """Return True while a silent node is not worth another wait."""
        return time.monotonic() < self._silent_until

    @property
    def is_answering(self) -> bool:
        """Return True if it answered within the last minute."""
        return time.monotonic() - self.answered_at < ANSWERED_S

    @property
    def has_overrun(self) -> bool:
        """Return True if a step recently ended because this node had used up most of its time."""
        return time.monotonic() - self._overran_at < OVERRUN_S

    def note(self, kind: Kind, method: str, seconds: float) -> None:
        """Record the duration of one call."""
        known = self.latencies(kind).get(method, seconds)
        self._measured[kind, method] = known + LATENCY_WEIGHT * (seconds - known), time.monotonic()

    @contextmanager
    def calling(self, kind: Kind, method: str) -> Iterator[None]:
        """Count a call as under way inside the block."""
        call = object()
        self._under_way[call] = kind, method, time.monotonic()
        try:
            yield
        finally:
            del self._under_way[call]

    def note_answer(self) -> None:
        """Record that the node answers."""
        self.answered_at = time.monotonic()
        self.is_silent = False

    def note_silence(self) -> None:
        """Record that a call waited for long and brought no answer."""
        now = time.monotonic()
        silences = self._silences if now - self._silent_at < SILENCE_FORGOTTEN_S else 0
        self.is_silent, self._silent_at = True, now
        self._silent_until = now + min(SILENCE_S * 2**silences, SILENCE_MAX_S)
        self._silences = min(silences + 1, 16)

    def note_overrun(self) -> None:
        """Record that a step ended because this node had used up most of its time."""
        self._overran_at = time.monotonic()

    def latencies(self, kind: Kind) -> dict[str, float]:
        """Return the recent latencies of a kind in seconds, by method."""
        oldest = time.monotonic() - MEASURED_S
        return {
            method: latency_s
            for (of_kind, method), (latency_s, at) in list(self._measured.items())
            if of_kind is kind and at >= oldest
        }

    def is_slow(self, kind: Kind, others: Iterable["Usage"]) -> bool:
        """Return True if any method of a kind takes far longer here than at the fastest other node.

        A call that has not ended takes as long as it has taken so far, or longer.
        """
        mine, known = self.latencies(kind), [other.latencies(kind) for other in others]
        for of_kind, method, began in list(self._under_way.values()):
            if of_kind is kind:
                mine[method] = max(mine.get(method, 0.0), time.monotonic() - began)
        return any(
            latency_s > max(SLOW_FROM_S, SLOW_FACTOR * min(fastest))
            for method, latency_s in mine.items()
            if (fastest := [latencies[method] for latencies in known if method in latencies])
        )


# The last call of the node that is being asked, or was asked last.
_called: ContextVar[str] = ContextVar("last_call", default="")
_asked: ContextVar[tuple[Usage, Kind] | None] = ContextVar("asked_node", default=None)


@contextmanager
def asking(usage: Usage, kind: Kind) -> Iterator[None]:
    """Attribute the calls inside the block to a node and a kind of question."""
    _called.set("")
    token = _asked.set((usage, kind))
    try:
        yield
    finally:
        _asked.reset(token)


def current() -> Usage | None:
    """Return the usage of the node that is being asked; None outside of any question."""
    asked = _asked.get()
    return asked and asked[0]


def current_kind() -> Kind | None:
    """Return the kind of the question that is being asked; None outside of any."""
    asked = _asked.get()
    return asked and asked[1]


def last_call() -> str:
    """Return the last call of this thread's last question; '' if it ended before any."""
    return _called.get()


def calling(method: str) -> AbstractContextManager[None]:
    """Count a call of the node that is being asked as under way inside the block."""
    _called.set(method)
    asked = _asked.get()
    return nullcontext() if asked is None else asked[0].calling(asked[1], method)


def note(method: str, seconds: float) -> None:
    """Record a call of the node that is being asked."""
    asked = _asked.get()
    if asked is not None:
        usage, kind = asked
        usage.note(kind, method, seconds)

"""Puts one question to several nodes at once. Used by chains.net.providers.

The slowest node alone decides how long that takes, and where the others' answers decide, it is not waited for.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from chains.base import ChainError, ProviderError
from chains.net import budget, threads
from chains.net.usage import SLOW_FACTOR, SLOW_FROM_S

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

# The least that a node is waited for that is not known to be slow.
PATIENCE_S: Final = SLOW_FROM_S


# Returns whether some answers decide, however many nodes answer that have not: by the answers and their number.
Decides = Callable[[Sequence[T], int], bool]


def ask(questions: Mapping[K, Callable[[], T]]) -> dict[K, T]:
    """Ask all at once and return all answers, in the order of the questions. Raises what a question raises."""
    lanes = list(questions)
    with _Round[K, T]() as asked:
        # The caller's own thread serves the first, and all that no thread was free for.
        own = [lane for lane in lanes if lane is lanes[0] or not asked.start(lane, questions[lane])]
        for lane in own:
            asked.put(lane, questions[lane])
        asked.wait(lambda answers: len(answers) == len(lanes))
        return {lane: asked.answers[lane] for lane in lanes}


def ask_until(
    questions: Mapping[K, Callable[[], T]], decides: Decides[T], *, is_slow: Callable[[K], bool]
) -> dict[K, T]:
    """Ask all at once, and return the answers that came until they decide; those of slow nodes may be missing.

    Others are waited for as long as it takes to call them slow. A question that was not waited for goes on in its
    thread, and one that no thread was free for is asked last, if it is needed.
    """
    began, lanes = monotonic(), list(questions)
    with _Round[K, T]() as asked:
        started = [lane for lane in lanes if asked.start(lane, questions[lane])]

        def is_decided(answers: Mapping[K, T]) -> bool:
            return decides(list(answers.values()), len(lanes) - len(answers))

        asked.wait(lambda answers: len(answers) == len(started) or is_decided(answers))
        until = began + max(PATIENCE_S, SLOW_FACTOR * (monotonic() - began))
        asked.wait(lambda answers: all(lane in answers or is_slow(lane) for lane in started), until=until)
        for lane in lanes:
            if lane not in started and not is_decided(asked.answers):
                asked.put(lane, questions[lane])
        return {lane: asked.answers[lane] for lane in lanes if lane in asked.answers}


def majority(counts: Callable[[Any], bool] = lambda _answer: True) -> Decides[object]:
    """Decide once more than half of the nodes give the same answer; nodes that failed have no voice.

    counts: whether an answer may decide before all have answered.
    """

    def decides(answers: Sequence[object], pending: int) -> bool:
        valid = [answer for answer in answers if not isinstance(answer, ProviderError)]
        return any(2 * valid.count(answer) > len(valid) + pending and counts(answer) for answer in valid)

    return decides


class _Round(Generic[K, T]):
    """The answers to one question, as they come. Late ones are dropped."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self.answers: dict[K, T] = {}

    def __enter__(self) -> "_Round[K, T]":
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over.set()

    def start(self, lane: K, question: Callable[[], T]) -> bool:
        """Ask in a thread of its own; return False if none is free."""
        return threads.start(lane, partial(self._serve, lane, question))

    def put(self, lane: K, question: Callable[[], T]) -> None:
        """Ask in the caller's thread."""
        answer = question()
        with self._changed:
            self.answers[lane] = answer

    def wait(self, is_enough: Callable[[Mapping[K, T]], bool], *, until: float | None = None) -> None:
        """Wait until enough have answered, or until a time. Raises what a question raised."""
        with self._changed:
            while self._failure is None and not is_enough(self.answers):
                left_s = None if until is None else until - monotonic()
                if left_s is not None and left_s <= 0:
                    break
                self._changed.wait(left_s)
            if self._failure is not None:
                raise self._failure

    def _serve(self, lane: K, question: Callable[[], T]) -> None:
        try:
            # A question that no caller waits for does not use up the time of the step.
            with budget.charged_until(self._over):
                answer = question()
        except BaseException as error:
            with self._changed:
                is_late = self._over.is_set()
                self._failure = self._failure or error
                self._changed.notify_all()
            if is_late and not isinstance(error, ChainError):
                raise
            return
        with self._changed:
            self.answers[lane] = answer
            self._changed.notify_all()

"""Puts several questions to one node by a few threads, within the step's budget. Used by the scans of families."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, Generic, NamedTuple, TypeVar

Q = TypeVar("Q")
T = TypeVar("T")

# Concurrent requests of one step to one node.
FETCHERS: Final = 4


class Fetched(NamedTuple, Generic[Q, T]):
    """The answers that came, by question, and the first failure; None if all came."""

    answers: dict[Q, T]
    failure: BaseException | None


def fetch(ask: Callable[[Q], T], questions: Iterable[Q]) -> Fetched[Q, T]:
    """Ask all questions and wait for every answer. A failure ends no other question."""
    with ThreadPoolExecutor(FETCHERS) as pool:
        # A thread does not inherit the step's budget by itself.
        asked = {question: pool.submit(copy_context().run, ask, question) for question in questions}
    failures = {question: future.exception() for question, future in asked.items()}
    return Fetched(
        {question: future.result() for question, future in asked.items() if failures[question] is None},
        next((failure for failure in failures.values() if failure is not None), None),
    )

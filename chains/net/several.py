"""Puts several questions to one node by a few threads, within the step's budget. Used by the families."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
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
        asked = _submitted(pool, ask, questions)
    failures = {question: future.exception() for question, future in asked.items()}
    return Fetched(
        {question: future.result() for question, future in asked.items() if failures[question] is None},
        next((failure for failure in failures.values() if failure is not None), None),
    )


def every(ask: Callable[[Q], T], questions: Iterable[Q]) -> dict[Q, T]:
    """Ask all questions and return every answer, by question. Raises the first failure.

    After it no further question is begun: a silent node costs the step one timeout, whatever the number of questions.
    """
    with ThreadPoolExecutor(FETCHERS) as pool:
        asked = _submitted(pool, ask, questions)
        wait(asked.values(), return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    for future in asked.values():
        if not future.cancelled() and (failure := future.exception()) is not None:
            raise failure
    return {question: future.result() for question, future in asked.items()}


def _submitted(pool: ThreadPoolExecutor, ask: Callable[[Q], T], questions: Iterable[Q]) -> dict[Q, Future[T]]:
    # A thread does not inherit the step's budget by itself.
    return {question: pool.submit(copy_context().run, ask, question) for question in questions}

"""Several questions to one node: the answers are returned with the first failure, and each is paid for by the step."""

from __future__ import annotations

import threading

import pytest

from chains.base import ProviderError
from chains.net import budget, several

# Ends a test that fails.
WAIT_S = 10.0


def test_all_answers_are_returned_by_their_questions() -> None:
    assert several.fetch(lambda number: number * 2, range(20)) == ({number: number * 2 for number in range(20)}, None)
    assert several.fetch(lambda number: number, ()) == ({}, None)


def test_answers_are_returned_along_with_the_first_failure() -> None:
    def ask(number: int) -> int:
        if number in {3, 5}:
            raise ProviderError(f"no {number}")
        return number

    answers, failure = several.fetch(ask, range(7))
    assert (answers, str(failure)) == ({number: number for number in (0, 1, 2, 4, 6)}, "no 3")


def test_as_many_questions_run_at_once_as_there_are_fetchers() -> None:
    together, beyond = threading.Barrier(several.FETCHERS), threading.Barrier(several.FETCHERS + 1)

    def ask(_: int) -> None:
        together.wait(WAIT_S)
        with pytest.raises(threading.BrokenBarrierError):
            beyond.wait(0.1)

    assert several.fetch(ask, range(2 * several.FETCHERS)).failure is None


def test_each_question_is_paid_for_by_the_step() -> None:
    with budget.budget(seconds=WAIT_S, requests=3):
        answers, failure = several.fetch(lambda _: budget.take(1.0), range(5))
    assert len(answers) >= 3
    assert isinstance(failure, budget.BudgetSpentError)

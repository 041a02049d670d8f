"""Several questions to one node: the answers are returned with the first failure, and each is paid for by the step."""

from __future__ import annotations

import threading
from time import sleep

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


def test_every_answer_is_returned_by_its_question() -> None:
    assert several.every(lambda number: number * 2, range(20)) == {number: number * 2 for number in range(20)}
    assert several.every(lambda number: number, ()) == {}


def test_after_a_failure_no_further_question_is_begun() -> None:
    asked: list[int] = []

    def ask(number: int) -> None:
        asked.append(number)
        sleep(0.005)
        raise ProviderError(f"no {number}")

    with pytest.raises(ProviderError, match="no 0"):
        several.every(ask, range(1_000))
    assert len(asked) < 100


def test_questions_under_way_end_before_a_failure_is_raised() -> None:
    begun, ended = threading.Event(), threading.Event()

    def ask(number: int) -> None:
        if number == 0:
            begun.wait(WAIT_S)
            raise ProviderError("no 0")
        begun.set()
        sleep(0.05)
        ended.set()

    with pytest.raises(ProviderError):
        several.every(ask, range(2))
    assert ended.is_set()

"""A question may have a part of a step's time."""

from __future__ import annotations

import time

import pytest

from chains.net import budget
from chains.net.budget import BudgetSpentError, PartSpentError


def spend(*, seconds: float, requests: int) -> None:
    """Ask a number of questions within a part of the step, and take a little longer than a short one."""
    with budget.part(seconds=seconds):
        for _ in range(requests):
            budget.take(5)
        time.sleep(0.02)
        budget.check()


def test_a_question_beyond_its_part_fails_and_leaves_the_rest() -> None:
    with budget.budget(seconds=60, requests=10):
        with pytest.raises(PartSpentError):
            spend(seconds=0.01, requests=1)
        assert budget.take(5) == 5


def test_a_part_pays_with_the_requests_of_its_step() -> None:
    with budget.budget(seconds=60, requests=3):
        spend(seconds=1, requests=1)
        with pytest.raises(BudgetSpentError):
            spend(seconds=1, requests=3)
        with pytest.raises(BudgetSpentError):
            budget.check()


def test_a_step_without_the_time_for_a_part_is_over() -> None:
    with budget.budget(seconds=1, requests=10), pytest.raises(BudgetSpentError), budget.part(seconds=2):
        pytest.fail("it was asked")


def test_a_part_may_take_the_rest_of_its_step() -> None:
    with budget.budget(seconds=1, requests=10), budget.part(seconds=2, is_rest_enough=True):
        assert budget.take(5) <= 1


def test_without_a_budget_a_part_bounds_nothing() -> None:
    with budget.part(seconds=0.01):
        assert budget.take(5) == 5

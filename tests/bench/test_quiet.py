"""A figure says how quiet the machine was, and a pair is repeated until its ratio holds."""

import re
from pathlib import Path

import pytest

from bench.measuring.quiet import PAIRS_MAX, beside, holds, machine_ticks, shares, until_it_holds


def test_other_programs_time_is_neither_idle_nor_withheld_nor_own(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  300 50 100 400 40 10 0 100 7 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")

    assert shares(machine_ticks(str(stat)), own=260) == pytest.approx((0.2, 0.1))


def test_a_lagging_clock_makes_no_share_negative() -> None:
    assert shares([0] * 8, own=3) == (0, 0)


def test_the_load_of_other_programs_is_printed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with beside():
        assert not capsys.readouterr().out

    assert re.search(r"other programs took \d+% of the processors, the host \d+%", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("ratios", "is_steady"),
    [([1.0, 1.0], False), ([1.0, 1.0, 1.04], True), ([1.0, 1.2, 1.4], False), ([3.0, 1.0, 1.01, 1.02, 1.0], True)],
)
def test_a_ratio_holds_once_its_last_medians_agree(ratios: list[float], *, is_steady: bool) -> None:
    assert holds([(ratio,) for ratio in ratios]) is is_steady


def test_every_ratio_of_a_pair_has_to_hold() -> None:
    assert not holds([(1.0, 1.0), (1.0, 1.5), (1.0, 2.0)])


@pytest.mark.parametrize(
    ("ratio", "at_least", "pairs"), [(1.0, 3, 3), (1.0, 5, 5), (2.0, 3, PAIRS_MAX)], ids=["steady", "asked", "restless"]
)
def test_a_pair_is_repeated_until_it_holds(ratio: float, at_least: int, pairs: int) -> None:
    numbers: list[int] = []

    def pair(number: int) -> list[float]:
        numbers.append(number)
        return [ratio**number]

    until_it_holds(pair, at_least=at_least)

    assert numbers == list(range(pairs))

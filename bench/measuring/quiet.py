"""Reports other programs' use of the machine during a measurement, and repeats a pair until its ratio is stable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.measuring.cpu import TICK_MS, tree_cpu_ms

PAIRS_MAX: Final = 10
# This many medians in a row, each over one pair more than the last, have to be close to each other.
MEDIANS: Final = 3
HOLDS_WITHIN: Final = 0.05
# Fields of the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guests are in user.
_IDLE, _STEAL, _FIELDS = (3, 4), 7, slice(1, 9)


@contextlib.contextmanager
def beside() -> Iterator[None]:
    """Print at the end the load of other programs: a figure of a busy machine is worth less than one of a quiet one."""
    times, own_ms = machine_ticks(), tree_cpu_ms(os.getpid())
    yield
    passed = [after - before for before, after in zip(times, machine_ticks(), strict=True)]
    others, steal = shares(passed, (tree_cpu_ms(os.getpid()) - own_ms) / TICK_MS)
    print(f"\nBeside it: other programs took {others:.0%} of the processors, the host {steal:.0%} (steal)")


def machine_ticks(stat: str = "/proc/stat") -> list[int]:
    """Return the processor time of the whole machine since its start, by kind."""
    return [int(field) for field in Path(stat).read_text().split()[_FIELDS]]


def shares(passed: Sequence[int], own: float) -> tuple[float, float]:
    """Return the share of the processor that other programs used, and the share that the host withheld."""
    whole = max(1, sum(passed))
    others = whole - passed[_STEAL] - sum(passed[kind] for kind in _IDLE) - own
    return max(0.0, others / whole), passed[_STEAL] / whole


def until_it_holds(pair: Callable[[int], Sequence[float]], *, at_least: int = MEDIANS) -> None:
    """Measure a pair, which returns its ratios, until the median of each is stable, at most ten times."""
    pairs: list[Sequence[float]] = []
    while len(pairs) < PAIRS_MAX and (len(pairs) < at_least or not holds(pairs)):
        pairs.append(pair(len(pairs)))
    verdict = "holds" if holds(pairs) else "does NOT hold"
    print(f"\n{len(pairs)} pairs: every ratio's median {verdict} within {HOLDS_WITHIN:.0%}")


def holds(pairs: Sequence[Sequence[float]]) -> bool:
    """Return True if the last pairs moved no ratio's median by more than the limit."""
    return len(pairs) >= MEDIANS and all(map(_is_steady, zip(*pairs, strict=True)))


def _is_steady(ratio: Sequence[float]) -> bool:
    medians = [median(ratio[: len(ratio) - back]) for back in range(MEDIANS)]
    return max(medians) <= (1 + HOLDS_WITHIN) * min(medians)

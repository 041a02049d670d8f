"""Prints figures with their goals. Used by every benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from bench.measuring.harness import Round


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A ratio of one interleaved run, with its goal."""

    name: str
    ratio: float
    goal: float
    better: Literal["at least", "at most"]
    detail: str = ""

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.goal if self.better == "at least" else self.ratio <= self.goal

    def line(self) -> str:
        sign = ">=" if self.better == "at least" else "<="
        verdict = "met" if self.is_met else "MISSED"
        return f"  {self.name:<58} {self.ratio:6.2f}   goal {sign} {self.goal:<5}  {verdict:<6}  {self.detail}"


def show(title: str, figures: list[Figure]) -> None:
    print(f"\n{title}")
    for figure in figures:
        print(figure.line())


def median_cpu(rounds_by_target: Mapping[str, Sequence[Round]]) -> dict[str, dict[str, float]]:
    """Return the processor time of a request by program: the median of each target's rounds."""
    return {
        name: {program: median(each.cpu_ms[program] for each in rounds) for program in rounds[0].cpu_ms}
        for name, rounds in rounds_by_target.items()
    }


def show_cpu(cpu_ms: Mapping[str, Mapping[str, float]]) -> None:
    """Print processor milliseconds a request: a row a target, a column a program."""
    programs = list(dict.fromkeys(program for row in cpu_ms.values() for program in row))
    print("\nProcessor milliseconds a request")
    print("  " + " " * 10 + "".join(f"{program:>11}" for program in programs))
    for target, row in cpu_ms.items():
        cells = "".join(f"{row[program]:11.3f}" if program in row else f"{'-':>11}" for program in programs)
        print(f"  {target:<10}{cells}")

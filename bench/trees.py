"""Runs benchmarks in two checkouts by turns and compares their figures: `python -m bench.trees OTHER BENCH...`.

OTHER is the path of another checkout with its environment (`make setup`). Consecutive runs meet the same load of the
machine, so their ratio means more than two figures of different days.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from bench.measuring.harness import ROOT

# A line of bench.measuring.report.Figure.
_FIGURE: Final = re.compile(r"^  (?P<name>\S.*?) +(?P<ratio>\d+\.\d+)   goal [<>]=")
# The table of processor milliseconds a request: its head names the programs, each row a target.
_PROGRAMS: Final = re.compile(r"^ {12,}(?P<programs>[a-z]+(?: +[a-z]+)+)$")
_ROW: Final = re.compile(r"^  (?P<target>[a-z_]+)(?P<cells>(?: +(?:\d+\.\d+|-))+)$")


def figures(printed: str) -> dict[str, float]:
    """Return the figures that a benchmark printed, by name."""
    by_name: dict[str, float] = {}
    programs: list[str] = []
    for line in printed.splitlines():
        if figure := _FIGURE.match(line):
            by_name[figure["name"]] = float(figure["ratio"])
        elif head := _PROGRAMS.match(line):
            programs = head["programs"].split()
        elif (row := _ROW.match(line)) and len(cells := row["cells"].split()) == len(programs):
            by_name |= {
                f"{row['target']}: {name}, ms": float(cell)
                for name, cell in zip(programs, cells, strict=True)
                if cell != "-"
            }
    return by_name


def compared(here: Iterable[Mapping[str, float]], there: Iterable[Mapping[str, float]]) -> list[str]:
    """Return a line for each figure of both trees: the medians of their runs, and the ratio of these."""
    mine, theirs = list(here), list(there)
    lines = []
    for name in mine[0]:
        if all(name in run for run in (*mine, *theirs)):
            one, other = median(run[name] for run in mine), median(run[name] for run in theirs)
            ratio = f"{one / other:6.2f}" if other else "     -"
            lines.append(f"  {name:<58} {one:9.3f} {other:9.3f} {ratio}")
    return lines


def run(tree: Path, bench: str, options: list[str]) -> dict[str, float]:
    """Run one benchmark of a checkout and return its figures. Raises CalledProcessError."""
    command = [str(tree / ".venv" / "bin" / "python"), "-m", f"bench.{bench}", *options]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, check=True)
    return figures(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("benches", nargs="+", metavar="BENCH", help="api, webhooks, batch, ...")
    parser.add_argument("--runs", type=int, default=3, help="the number of runs in each tree")
    parser.add_argument("--quick", action="store_true", help="pass --quick on")
    chosen = parser.parse_args()
    options = ["--quick"] if chosen.quick else []
    for bench in chosen.benches:
        here: list[dict[str, float]] = []
        there: list[dict[str, float]] = []
        for number in range(chosen.runs):
            turns = [(ROOT, here), (chosen.other.resolve(), there)]
            # Every other time backwards, so that neither always follows the other.
            for tree, runs in turns if number % 2 == 0 else reversed(turns):
                runs.append(run(tree, bench, options))
        print(f"\n{bench:<58}       here     there  ratio")
        sys.stdout.write("".join(f"{line}\n" for line in compared(here, there)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()

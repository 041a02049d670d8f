"""The part of `make lint` that finds runs of equal lines, tried on files of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "repeats.py"
RUN: Final = [f"value_{number}={number}" for number in range(8)]


def look(folder: Path, **files: list[str]) -> tuple[int, str]:
    """Write files and look for runs in them; return the exit code, and what was said."""
    for name, lines in files.items():
        (folder / f"{name}.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, SCRIPT, "."], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_run_is_named_once_with_both_its_places(tmp_path: Path) -> None:
    longer = [*RUN, "value_8 = 8", "value_9 = 9"]

    assert look(tmp_path, a=["first = 1", *longer], b=longer) == (1, "b.py:1 ~ a.py:2: 8 lines or more occur twice\n")


def test_seven_lines_are_no_run(tmp_path: Path) -> None:
    assert look(tmp_path, a=RUN, b=RUN[:7]) == (0, "")


@pytest.mark.parametrize("between", [[""], ["# why"], ["import os"], ["from os import (", "    path,", ")"]])
def test_uncounted_lines_do_not_interrupt_a_run(between: list[str], tmp_path: Path) -> None:
    assert look(tmp_path, a=RUN, b=[*RUN[:4], *between, *RUN[4:]])[0] == 1


def test_lone_punctuation_does_not_count(tmp_path: Path) -> None:
    seven = ["call(", *(f"    {row}," for row in RUN[:6]), ")"]

    assert look(tmp_path, a=seven, b=seven) == (0, "")


def test_imports_are_no_run(tmp_path: Path) -> None:
    imports = [f"from os import path as path_{number}" for number in range(9)]

    assert look(tmp_path, a=imports, b=imports) == (0, "")


def test_a_list_of_equal_rows_is_no_run_of_its_own(tmp_path: Path) -> None:
    assert look(tmp_path, a=["rows = [", *["    1,"] * 12, "]"]) == (0, "")


def test_a_run_may_repeat_within_one_file(tmp_path: Path) -> None:
    assert look(tmp_path, a=[*RUN, "between = 1", *RUN])[0] == 1


def test_no_file_at_all_is_an_error(tmp_path: Path) -> None:
    assert look(tmp_path) == (1, "no Python file found: nothing was compared\n")

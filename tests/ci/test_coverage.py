"""The marks of `make coverage`: which ones count as reached, and that a run with missed ones fails."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.coverage import COVERED, ROOT, Mark, Marked, covered

CODE = '''"""Of a module nothing but functions is marked."""
LIMIT = 3


class StopError(Exception):
    def __str__(self):
        """Nor is a docstring."""
        return "told"


def judge(units):
    if units < 0:
        raise StopError
    for each in range(units):
        if each == LIMIT:
            break
    try:
        units / (units - 1)
    except ZeroDivisionError:
        return "one"
    match units:
        case 0:
            return "none"
        case _:
            return lambda: "many"
    raise LookupError("it vanished while it was locked")
'''


@pytest.mark.parametrize(
    ("calls", "missed"),
    [
        ((), {"8", "12", "12, going on without", "13", "14", "14, going on without", "15", "15, going on without", "16",
              "17", "18", "20", "21", "23", "25"}),
        ((0, 1, 2), {"8", "13", "16"}),
        ((0, 1, 9), {"8", "13"}),
        ((-1, 0, 1, 9), {"8"}),
    ],
)  # fmt: skip
def test_each_statement_and_both_ways_of_each_branch_are_to_be_reached(
    calls: tuple[int, ...], missed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "code.py").write_text(CODE)
    marked, met = Marked(tmp_path / "code.py", "code.py"), set[Mark]()
    names: dict[str, Any] = {"__met__": met}
    exec(compile(marked.tree, "code.py", "exec", dont_inherit=True), names)  # noqa: S102  it is the code above
    for units in calls:
        with contextlib.suppress(names["StopError"]):
            names["judge"](units)
    assert {f"{line}{way}" for _, line, way in marked.marks - met} == missed


def test_every_pattern_finds_modules() -> None:
    assert [pattern for pattern in COVERED if not list(ROOT.glob(pattern))] == []
    assert {"core.money", "models.ledger.ledger", "actors.signer.broadcast"} < covered().keys()


def test_a_run_with_missed_marks_fails_and_names_them() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/core/test_money.py", "-k", "fiat"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"COVERAGE": "1"}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "not reached: models/ledger/ledger.py:" in done.stdout

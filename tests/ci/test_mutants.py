"""Mutants: which guards are removed, and which tests are asked."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "mutants.py"
SAMPLE: Final = '''"""A module."""

def settle(row, amount):
    """Settle a row."""
    if row is None or amount < 0:
        return False
    if (found := look(row)):
        return found
    if row.is_open:
        close(row)
    else:
        raise ValueError
    return touched(
        "UPDATE deposits SET status = 'confirmed' WHERE id = %s AND status = 'pending'"
        " AND amount_units < %s AND NOT is_held AND (a = b AND c IS NULL) RETURNING id",
        (row, amount),
    )
'''


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_each_mutant_lacks_one_guard_and_is_a_program(script: ModuleType) -> None:
    mutants = list(script.mutants(Path("models/sample.py"), SAMPLE))
    assert [(mutant.line, mutant.guard) for mutant in mutants] == [
        (5, "if row is None or amount < 0"),
        (14, "AND status = 'pending'"),
        (15, "AND NOT is_held"),
    ]
    assert "    if False:\n        return False\n" in mutants[0].text
    assert 'WHERE id = %s"\n' in mutants[1].text
    assert "< %s AND (a = b AND c IS NULL) RETURNING" in mutants[2].text
    for mutant in mutants:
        compile(mutant.text, "sample.py", "exec")


def test_a_module_is_tried_by_its_own_tests_then_by_its_users(script: ModuleType) -> None:
    own, further = script.tests_of(Path("models/ledger/shares.py"))
    assert own == ["tests/models/ledger/test_shares.py"]
    assert further[0] == "tests/models/ledger"
    assert "tests/models/invariants/test_split_machine.py" in script.tests_of(Path("models/deposits/rows.py"))[-1]

"""The part of `make lint` that checks the records of decisions, tried on a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "decisions.py"
RECORD: Final = """# Rates need two sources

Replaces: 0001, 0002 (in part).

A rate of one source is no rate.

## Context

Sources fail. Some lie.

## Decision

- Two sources agree, since one may lie.

## Price

- A coin may have no rate.
"""
OTHER: Final = RECORD.replace("0001, 0002 (in part)", "0002")
FRESH: Final = RECORD.replace("Replaces: 0001, 0002 (in part).\n\n", "")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return a folder with the script, two records and their index."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / ".ci")
    write(tmp_path, "rates", RECORD)
    write(tmp_path, "quotes", OTHER)
    assert run(tmp_path, "--write") == (0, "")
    return tmp_path


def write(house: Path, subject: str, text: str) -> None:
    (house / "docs" / "decisions" / f"{subject}.md").write_text(text, encoding="utf-8")


def run(house: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, ".ci/decisions.py", *arguments]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_index_has_a_row_for_each_record_and_each_older_number(house: Path) -> None:
    assert run(house) == (0, "")
    lines = (house / "docs" / "decisions" / "README.md").read_text(encoding="utf-8").splitlines()

    assert "| [rates](rates.md) | Rates need two sources | A rate of one source is no rate. |" in lines
    assert "| 0001 | [rates](rates.md) |" in lines
    assert "| 0002 | [quotes](quotes.md), [rates](rates.md) |" in lines


def test_an_index_that_differs_fails_until_it_is_written(house: Path) -> None:
    write(house, "web-edge", FRESH)

    code, error = run(house)
    assert (code, "decisions.py --write" in error) == (1, True)
    assert run(house, "--write") == (0, "")
    assert run(house) == (0, "")


@pytest.mark.parametrize(
    ("subject", "text", "error"),
    [
        ("0093-rates", FRESH, "form of a record"),
        ("more", FRESH.replace("## Price", "## Cost"), "form of a record"),
        ("more", FRESH.replace("A rate of one source is no rate.\n\n", ""), "form of a record"),
        ("more", FRESH.replace("Some lie.", "A. B. C. D. E."), "6 sentences of context"),
        ("more", FRESH.replace("- Two", "Two"), "as bullets"),
        ("more", FRESH.replace("- A coin", "A coin"), "as bullets"),
        ("more", RECORD.replace("0001, 0002 (in part)", "0001 and 0002"), "Replaces: is a list"),
        ("more", RECORD.replace("0001, 0002 (in part)", "0001"), "0001 is replaced whole by ['more', 'rates']"),
        ("more", RECORD.replace("0001, 0002 (in part)", "0003 (in part)"), "0003 is replaced whole by no record"),
    ],
)
def test_a_record_in_another_form_fails(house: Path, subject: str, text: str, error: str) -> None:
    write(house, subject, text)

    for arguments in ((), ("--write",)):
        code, outcome = run(house, *arguments)
        assert (code, error in outcome) == (1, True)


def test_an_empty_folder_fails(house: Path) -> None:
    for file in (house / "docs" / "decisions").iterdir():
        file.unlink()

    assert run(house) == (1, "no record there: nothing was checked\n")

"""The part of `make lint` that counts words that are hard to read, tried on a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / ".ci" / "words.py"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return a folder that has the script and no figures yet."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    (tmp_path / ".ci" / "words.txt").touch()
    return tmp_path


def write(house: Path, name: str, text: str) -> None:
    (house / name).parent.mkdir(exist_ok=True)
    (house / name).write_text(text, encoding="utf-8")


def look(house: Path, *arguments: str, folder: str = ".") -> tuple[int, str]:
    command = [sys.executable, house / ".ci" / "words.py", *arguments]
    done = subprocess.run(command, cwd=house / folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def figures(house: Path) -> str:
    return (house / ".ci" / "words.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("# Somebody has told it.\n", 2),
        ('"""Nobody stands here."""\n', 2),
        ('def f() -> None:\n    """Ring a bell."""\n', 2),
        ("# It is none of ours any more.\n", 3),
        ("# What came in is counted.\n", 1),
        ("# First this. What came in is counted.\n", 1),
        ("# What is it?\n", 0),
        ("# Say what came in.\n", 0),
        ('told = "somebody"\n', 0),
        ('told = "# somebody"  # nobody\n', 1),
        ("# Calls `ring` and `told()`.\n", 0),
        ("# The string of understanding.\n", 0),
    ],
)
def test_markers_of_comments_and_docstrings_count(house: Path, text: str, n: int) -> None:
    write(house, "a.py", text)

    code, errors = look(house)

    assert (code, f"a.py: {n}, was 0" in errors) == (min(n, 1), n > 0)


def test_markdown_counts_outside_of_code(house: Path) -> None:
    write(house, "a.md", "Nobody `told` it.\n\n```bash\necho somebody stands\n```\n")

    assert "a.md: 1, was 0" in look(house)[1]


def test_a_listed_figure_passes_and_one_more_does_not(house: Path) -> None:
    write(house, ".ci/words.txt", "1 a.md\n")
    write(house, "a.md", "Nobody.\n")
    assert look(house) == (0, "")

    write(house, "a.md", "Nobody, anew.\n")

    assert "a.md: 2, was 1" in look(house)[1]


def test_a_figure_that_fell_has_to_be_written_down(house: Path) -> None:
    write(house, ".ci/words.txt", "2 a.md\n1 gone.md\n")
    write(house, "a.md", "Nobody.\n")
    code, errors = look(house)
    assert code == 1
    assert "a.md: 1, was 2\ngone.md: 0, was 1" in errors

    assert look(house, "--write") == (0, "")

    assert figures(house) == "1 a.md\n"


def test_a_moved_file_takes_its_figure_along(house: Path) -> None:
    write(house, ".ci/words.txt", "2 old.md\n")
    write(house, "new.md", "Nobody, somebody.\n")
    write(house, "newer.md", "Nobody.\n")

    assert "newer.md: 1, was 0" in look(house, "--write")[1]

    assert figures(house) == "2 new.md\n"


def test_writing_never_raises_a_figure(house: Path) -> None:
    write(house, ".ci/words.txt", "1 a.md\n")
    write(house, "a.md", "Nobody, anew.\n")

    assert look(house, "--write")[0] == 1

    assert figures(house) == "1 a.md\n"


@pytest.mark.parametrize("hidden", [".venv/a.md", "build/a.md"])
def test_hidden_and_built_files_do_not_count(house: Path, hidden: str) -> None:
    write(house, "a.md", "Plain.\n")
    write(house, hidden, "Nobody.\n")

    assert look(house) == (0, "")


def test_no_file_at_all_is_an_error(house: Path) -> None:
    (house / "empty").mkdir()

    assert look(house, folder="empty") == (1, "no file there: nothing was counted\n")

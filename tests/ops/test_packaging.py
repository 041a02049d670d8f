"""The contents of a wheel of this tree: the folders that operators expect, their files, and one command."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
OPERATIONS: Final = ROOT / "docs" / "operations.md"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tops(project: dict[str, Any]) -> set[str]:
    """The packages at the top of a wheel, found as setuptools finds them."""
    patterns = project["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    return {name for name in packages if any(fnmatchcase(name, pattern) for pattern in patterns)}


def test_a_wheel_has_exactly_the_documented_packages(tops: set[str]) -> None:
    (sentence,) = re.findall(r"^.*packages with plain names.*$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    listed = re.findall(r"`(\w+)`", sentence.partition("plain names:")[2].partition(".")[0])

    assert sorted(listed) == sorted(tops)


def test_a_wheel_has_one_command(project: dict[str, Any]) -> None:
    assert project["project"]["scripts"] == {"sluice": "cli.__main__:main"}
    assert not {"gui-scripts", "entry-points"} & project["project"].keys()


def test_a_wheel_has_every_file_that_is_no_code(project: dict[str, Any], tops: set[str]) -> None:
    patterns = {
        f"{package.replace('.', '/')}/{pattern}"
        for package, names in project["tool"]["setuptools"]["package-data"].items()
        for pattern in names
    }
    files = {str(file.relative_to(ROOT)) for top in tops for file in (ROOT / top).rglob("*") if file.is_file()}
    # Files that only `make lock` reads are not in the wheel.
    others = {file for file in files if not file.endswith((".py", ".pyc", ".in"))}

    assert others
    assert {file for file in others if not any(fnmatchcase(file, pattern) for pattern in patterns)} == set()

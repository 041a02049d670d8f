"""docs/decisions: each reference names a record that exists, and none goes by a number."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RECORDS: Final = ROOT / "docs" / "decisions"
TEXTS: Final = {".py", ".md", ".sql", ".html", ".js", ".css", ".json", ".toml", ".txt", ".in", ""}
REFERENCE: Final = re.compile(r"\bdecisions/([\w.-]*\w)")
BY_NUMBER: Final = re.compile(r"\bdecisions?[ /]+\d{4}\b|\]\([^)]*\b\d{4}-[a-z-]+\.md", re.IGNORECASE)
LINK: Final = re.compile(r"\]\(([^)#:\s]+)")
CODE_PATH: Final = re.compile(r"`((?:actors|api|bench|chains|cli|core|devstack|docs|models|scheduler|tests)/[\w./-]+)`")


def texts() -> dict[str, str]:
    """Return the text of each file of the repository, by its path."""
    document = {}
    for top, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".ci" or not name.startswith((".", "build", "__pycache__"))]
        for file in (Path(top, name) for name in names):
            if file.suffix in TEXTS and not file.name.startswith("."):
                document[str(file.relative_to(ROOT))] = file.read_text(encoding="utf-8")
    return document


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return texts()


def test_every_reference_names_a_record(files: dict[str, str]) -> None:
    own = str(Path(__file__).relative_to(ROOT))
    named = {(name, record) for name, text in files.items() if name != own for record in REFERENCE.findall(text)}

    assert {record for _, record in named} > {"README.md", "spends.md", "quotes.md"}
    assert [(name, record) for name, record in sorted(named) if not (RECORDS / record).is_file()] == []


@pytest.mark.parametrize("reference", ["decision 0040", "docs/decisions/0088", "[why](decisions/0080-one.md)"])
def test_a_number_is_seen(reference: str) -> None:
    assert BY_NUMBER.search(reference)


def test_no_reference_is_a_number(files: dict[str, str]) -> None:
    own = str(Path(__file__).relative_to(ROOT))

    assert [name for name, text in files.items() if name != own and BY_NUMBER.search(text)] == []


@pytest.mark.parametrize("record", sorted(RECORDS.glob("*.md")), ids=lambda record: record.stem)
def test_every_link_and_path_of_a_record_exists(record: Path) -> None:
    text = record.read_text(encoding="utf-8")

    assert [link for link in LINK.findall(text) if not (RECORDS / link).is_file()] == []
    assert [path for path in CODE_PATH.findall(text) if not (ROOT / path).exists()] == []

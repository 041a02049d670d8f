"""The pictures of docs/architecture.md show the real imports. A failure prints the right picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import grimp
import pytest

PAGE: Final = Path(__file__).parents[2] / "docs" / "architecture.md"
FLOORS: Final = ("devstack", "cli", "api", "scheduler", "actors", "chains", "models", "core")

Arrows = set[tuple[str, str]]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the imports of each module at run time, without those for types alone."""
    return grimp.build_graph(*FLOORS, exclude_type_checking_imports=True, cache_dir=None)


@pytest.fixture(scope="module")
def pictures() -> dict[str, list[str]]:
    """The lines of each picture, by the heading above it."""
    matches = re.findall(r"^## (\w+)$|^    (\w+(?: --> \w+)?)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    drawings: dict[str, list[str]] = {}
    heading = ""
    for named, line in matches:
        heading = named or heading
        drawings.setdefault(heading, []).extend([line] if line else [])
    return drawings


def drawn(graph: grimp.ImportGraph, names: list[str]) -> list[str]:
    """Return a picture of packages or modules: arrows that follow from others are left out, as are no names."""
    pairs = {
        (a, b)
        for a in names
        for b in names
        if a != b and graph.direct_import_exists(importer=a, imported=b, as_packages=True)
    }
    arrows = {arrow for arrow in pairs if not is_way(pairs - {arrow}, *arrow)}
    alone = set(names) - {name for arrow in arrows for name in arrow}
    return sorted([*(short(name) for name in alone), *(f"{short(a)} --> {short(b)}" for a, b in arrows)])


def is_way(arrows: Arrows, start: str, end: str) -> bool:
    reached, ahead = set[str](), {start}
    while ahead:
        reached |= ahead
        ahead = {b for a, b in arrows if a in ahead} - reached
    return end in reached


def short(name: str) -> str:
    return name.rpartition(".")[2]


def test_the_floors_import_each_other_as_drawn(graph: grimp.ImportGraph, pictures: dict[str, list[str]]) -> None:
    assert pictures["Floors"] == drawn(graph, list(FLOORS))


@pytest.mark.parametrize("floor", [floor for floor in FLOORS if floor != "scheduler"])
def test_a_floor_is_drawn_as_its_imports_are(
    floor: str, graph: grimp.ImportGraph, pictures: dict[str, list[str]]
) -> None:
    assert pictures[floor] == drawn(graph, sorted(graph.find_children(floor)))

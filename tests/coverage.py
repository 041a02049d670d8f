"""Finds what no test reaches of the code that moves money: each statement, and both ways of each branch.

`make coverage` switches it on; tests/__init__.py loads it before anything that it looks at. Those modules are compiled
with marks in their functions. A tracer would have Python call it for every line of all other modules too, which costs a
fifth of the whole run.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import pytest

IS_ON: Final = "COVERAGE" in os.environ
ROOT: Final = Path(__file__).parents[1]
COVERED: Final = (
    "core/money.py", "core/*/states.py", "models/ledger/*.py", "models/spends/*.py", "actors/recovery/resume.py",
    "actors/signer/*.py",
)  # fmt: skip
# Mypy proves that nothing comes there; a row that is locked, or was just written, is there.
UNREACHABLE: Final = re.compile(r"assert_never\(|raise LookupError\(.*(vanished while it was|does not tell)")
# A file, its line, and which way a branch goes from there if that is no line.
Mark = tuple[str, int, str]
# The marks that were reached: here, and in xdist's processes, which report them at their end.
met: set[Mark] = set()


class Marked:
    """The code of a file with marks before each statement of its functions, and where a branch is not taken."""

    def __init__(self, file: Path, name: str) -> None:
        text = file.read_text(encoding="utf-8")
        self.tree, self.marks = ast.parse(text), set[Mark]()
        self._name, self._lines = name, text.splitlines()
        functions = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))
        for node in {node: None for function in functions for node in ast.walk(function)}:
            self._mark(node)
        ast.fix_missing_locations(self.tree)

    def _mark(self, node: ast.AST) -> None:
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [part for statement in statements for part in self._before(statement)])
        if isinstance(node, ast.If | ast.For | ast.While) and not node.orelse:
            # A match needs none: it ends in assert_never.
            node.orelse = [self._met(node.lineno, ", going on without")]

    def _before(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        # A docstring stays the first, and what a protocol has in place of code does nothing.
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            yield self._met(statement.lineno)
        yield statement

    def _met(self, line: int, way: str = "") -> ast.stmt:
        mark = self._name, line, way
        if not UNREACHABLE.search(self._lines[line - 1]):
            self.marks.add(mark)
        return ast.parse(f"__met__.add({mark!r})").body[0]


def covered() -> dict[str, Path]:
    """Return the files that are looked at, by the names of their modules."""
    files = sorted(file for pattern in COVERED for file in ROOT.glob(pattern))
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}


def missed() -> list[Mark]:
    """Return the marks that no test reached, in the order of the files."""
    wanted = {mark for file in covered().values() for mark in Marked(file, str(file.relative_to(ROOT))).marks}
    return sorted(wanted - met)


class _Loader(SourceFileLoader):
    """Compiles a file with its marks, and keeps no bytecode of that."""

    def get_code(self, fullname: str) -> CodeType:
        file = Path(self.get_filename(fullname))
        return compile(Marked(file, str(file.relative_to(ROOT))).tree, file, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__met__"] = met
        super().exec_module(module)


class _Finder:
    names: Final = covered()

    @classmethod
    def find_spec(cls, name: str, path: list[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in cls.names else None
        if spec is not None:
            spec.loader = _Loader(name, str(cls.names[name]))
        return spec


def begin() -> None:
    """Have the modules marked that are imported from now on."""
    sys.meta_path.insert(0, _Finder)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what one of xdist's processes met."""
    met.update(getattr(node, "workeroutput", {}).get("met", ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run with missed marks; a process of xdist only reports the marks that it reached."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["met"] = sorted(met)
    elif missed() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was missed."""
    if marks := missed():
        terminalreporter.section("no test reaches")
        terminalreporter.write("".join(f"not reached: {name}:{line}{way}\n" for name, line, way in marks))

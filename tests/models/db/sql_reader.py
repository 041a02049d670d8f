"""Reads from the source which SQL verbs on which tables a process's code can reach.

A rough call graph by names: every function, class or constant that a reachable one mentions is reachable, and so is
every function of PostgreSQL that its SQL names. It may find too much, and it misses SQL that is composed at run time.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = ("core", "models", "chains", "actors", "api", "scheduler")

_INSERTS: Final = dict.fromkeys(("write", "write_all", "stored", "store_all"), "INSERT INTO")
_ROW_VERBS: Final = {"read": "FROM", "first": "FROM"} | _INSERTS

Name = tuple[str, str]
# (table, verb); LOCK means SELECT … FOR UPDATE and the like, "SET column" a column changed by an UPDATE.
Deed = tuple[str, str]


def modules() -> dict[str, Path]:
    """Return every module of the gateway, by name."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}


@functools.cache
def _parsed() -> dict[str, ast.Module]:
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in modules().items()}


@functools.cache
def tables() -> frozenset[str]:
    """Return the tables that migrations create."""
    return frozenset(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?([\w.]+)", _migrations())) | {"schema_migrations"}


def reachable(starts: Iterable[str]) -> dict[Deed, set[str]]:
    """Return what some modules' code can do to tables, with the definitions that do it."""
    tables_by_name: defaultdict[Deed, set[str]] = defaultdict(set)
    seen: set[Name] = set()
    waiting = [name for name in _definitions() if name[0] in set(starts)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        deeds, mentioned = _read(name)
        for deed in deeds:
            tables_by_name[deed].add(".".join(name))
        waiting += mentioned
    return dict(tables_by_name)


@functools.cache
def _read(name: Name) -> tuple[set[Deed], list[Name]]:
    """Return what a definition's own text does to tables, and the definitions that it mentions."""
    node = _definitions()[name]
    deeds = {deed for text in (*_texts(node), *_of_rows(name[0], node)) for deed in _deeds(text)}
    return deeds, [*_mentioned(name[0], node, without=_of_columns(name[0], node))]


@functools.cache
def _migrations() -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "models/db/migrations").glob("*.sql")))


@functools.cache
def _definitions() -> dict[Name, ast.stmt]:
    document: dict[Name, ast.stmt] = {}
    for module, tree in _parsed().items():
        for node in tree.body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    document[module, node.name] = node
                case ast.Assign(targets=targets):
                    document |= {(module, target.id): node for target in targets if isinstance(target, ast.Name)}
                case ast.AnnAssign(target=ast.Name(id=name)):
                    document[module, name] = node
    return document


@functools.cache
def _imports(module: str) -> dict[str, str]:
    """Return a module's imported names with their dotted origins."""
    document: dict[str, str] = {}
    for node in ast.walk(_parsed()[module]):
        if isinstance(node, ast.ImportFrom) and node.module:
            document |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return document


def _mentioned(module: str, node: ast.stmt, *, without: Collection[ast.expr] = ()) -> Iterator[Name]:
    imports = _imports(module)
    for part in ast.walk(node):
        if part in without:
            continue
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            own, _, name = imports.get(part.id, f"{module}.{part.id}").rpartition(".")
            candidate = (own, name)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            candidate = (imports.get(part.value.id, ""), part.attr)
        else:
            continue
        if candidate in _definitions():
            yield candidate


def _of_columns(module: str, node: ast.stmt) -> set[ast.expr]:
    """Return mentions of a table class that read columns of its table alone, and nothing that the class joins."""
    mentions = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "select":
            mentions |= {part.func.value} if part.args else set()
        elif (
            isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and part.attr in _columns_of(module, part.value)
        ):
            mentions.add(part.value)
    return mentions


def _columns_of(module: str, mention: ast.expr) -> set[str]:
    """Return the columns of the table class that is mentioned; none if it is something else."""
    classes = [_definitions()[name] for name in _mentioned(module, ast.Expr(mention))]
    lines = [line for each in classes if isinstance(each, ast.ClassDef) and _declared(each) for line in each.body]
    columns = [line for line in lines if isinstance(line, ast.AnnAssign) and not isinstance(line.value, ast.Call)]
    return {column.target.id for column in columns if isinstance(column.target, ast.Name)}


def _texts(node: ast.stmt) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else " " for v in part.values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _of_rows(module: str, node: ast.stmt) -> Iterator[str]:
    """Yield the SQL that table classes compose from arguments; without a named class, that of any mentioned one."""
    mentioned = _tables_of(module, node)
    yield from (f"FROM {table}" for table in {*mentioned, *_declared(node)})
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _ROW_VERBS:
            written = " ".join(text for argument in part.args for text in _texts(ast.Expr(argument)))
            of = part.func.value.func if isinstance(part.func.value, ast.Call) else part.func.value
            named = _tables_of(module, ast.Expr(of))
            yield from (f"{_ROW_VERBS[part.func.attr]} {table} {written}" for table in named or mentioned)


def _tables_of(module: str, node: ast.stmt) -> set[str]:
    return {table for name in _mentioned(module, node) for table in _declared(_definitions()[name])}


def _declared(node: ast.stmt) -> list[str]:
    """Return the table that a class declares, or None."""
    keywords = node.keywords if isinstance(node, ast.ClassDef) else []
    return [word.value.value.split()[0] for word in keywords if word.arg == "table"]  # type: ignore[attr-defined]


@functools.cache
def _functions() -> dict[str, str]:
    matches = re.findall(r"CREATE (?:OR REPLACE )?FUNCTION (\w+)\(.*?AS\s*\$\$(.*?)\$\$", _migrations(), re.DOTALL)
    return dict(matches)


@functools.cache
def _deeds(text: str) -> frozenset[Deed]:
    collected = set()
    locked = set(re.findall(r"FOR (?:NO KEY )?(?:UPDATE|SHARE)(?: OF (\w+))?", text))
    # Most texts name no table, and each would be searched for all of them.
    for table in (table for table in tables() if table in text):
        name = re.escape(table)
        if re.search(rf"INSERT INTO {name}\b", text):
            collected.add((table, "INSERT"))
        if re.search(rf"UPDATE {name}\b|INSERT INTO {name}\b[\s\S]*ON CONFLICT[\s\S]*DO UPDATE", text):
            collected.add((table, "UPDATE"))
        for changes in re.findall(rf"UPDATE {name}(?: \w+)? SET (.+?)(?: WHERE | FROM |$)", text, re.DOTALL):
            collected |= {(table, f"SET {column}") for column in re.findall(r"(?:^|, )(\w+) = ", changes)}
        if re.search(rf"DELETE FROM {name}\b", text):
            collected.add((table, "DELETE"))
        elif re.search(rf"(?:FROM|JOIN) {name}\b", text):
            collected.add((table, "SELECT"))
        # FOR UPDATE OF i locks the table with the alias i alone.
        if any(re.search(rf"(?:FROM|JOIN) {name}{alias and rf' {alias}'}\b", text) for alias in locked):
            collected.add((table, "LOCK"))
    for function, body in _functions().items():
        if function in text and body != text and re.search(rf"\b{function}\(", text):
            collected |= _deeds(body)
    return frozenset(collected)

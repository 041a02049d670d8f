"""Reads from the code which errors a function can raise. Used by tests.api.test_declared_errors.

A function raises the errors that it names and those of the functions that it names, less those that it catches. This
finds too many where a value excludes an error, and too few behind a method whose name several classes have.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from core.errors import ERRORS, DomainError

ROOT: Final = Path(__file__).parents[1]
FLOORS: Final = ("api", "actors", "models", "chains", "core")

Errors = frozenset[type[DomainError]]
# A function's module and qualified name.
Place = tuple[str, str]
NONE: Final[Errors] = frozenset()


class Raised:
    """The errors of each function, computed until nothing changes."""

    def __init__(self) -> None:
        self._code: dict[Place, ast.FunctionDef] = {}
        self._methods: dict[str, list[Place]] = defaultdict(list)
        for floor in FLOORS:
            for file in sorted((ROOT / floor).rglob("*.py")):
                self._read(file)
        self._known: dict[Place, Errors] = {}
        self._callers: dict[Place, set[Place]] = defaultdict(set)
        self._due: dict[Place, None] = {}

    def _read(self, file: Path) -> None:
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for name, node in _named(ast.parse(file.read_text(encoding="utf-8")), ""):
            self._code[module, name] = node
            owner, _, method = name.rpartition(".")
            if owner and not method.startswith("__"):
                self._methods[method].append((module, name))

    def by(self, function: Any) -> Errors:
        """Return the errors that a function can raise."""
        place = (function.__module__, function.__qualname__)
        self._due[place] = None
        while self._due:
            at, _ = self._due.popitem()
            names = self._of(self._code[at], at)
            if names != self._known.get(at):
                self._known[at] = names
                self._due |= dict.fromkeys(self._callers[at])
        return self._known[place]

    def _of(self, node: ast.AST, at: Place) -> Errors:  # noqa: PLR0911 - a case each
        """Return the errors that running a piece of code can raise."""
        match node:
            case ast.Try():
                return self._of_try(node, at)
            case ast.With():
                return self._of_with(node, at)
            case ast.Call(func=ast.Name(id="isinstance")):
                return self._of(node.args[0], at)
            case ast.Call():
                passed = {word.arg for word in node.keywords}
                return self._all([*node.args, *node.keywords], at) | self._of_name(node.func, at, passed)
            case ast.FunctionDef():
                # A decorator ran before, types are for readers, and a call may replace a default.
                return self._all(node.body, at)
            case ast.AnnAssign():
                return NONE if node.value is None else self._of(node.value, at)
            case ast.Name() | ast.Attribute():
                return self._of_name(node, at)
        return self._all(ast.iter_child_nodes(node), at)

    def _all(self, nodes: Iterable[ast.AST], at: Place) -> Errors:
        return NONE.union(*(self._of(node, at) for node in nodes))

    def _of_try(self, node: ast.Try, at: Place) -> Errors:
        left, handled = self._all(node.body, at), NONE
        for handler in node.handlers:
            caught = _subclasses(left, _value(handler.type, at))
            left -= caught
            handled |= self._all(handler.body, at) | (caught if _raises_again(handler) else NONE)
        return left | handled | self._all([*node.orelse, *node.finalbody], at)

    def _of_with(self, node: ast.With, at: Place) -> Errors:
        inside = self._all(node.body, at)
        for item in node.items:
            match item.context_expr:
                case ast.Call(func=ast.Attribute(attr="suppress"), args=kinds):
                    inside -= NONE.union(*(_subclasses(inside, _value(kind, at)) for kind in kinds))
                case other:
                    inside |= self._of(other, at)
        return inside

    def _of_name(self, node: ast.expr, at: Place, passed: Container[str | None] = ()) -> Errors:
        """Return the errors of a named thing; of a function, with its defaults for the arguments not `passed`."""
        value = _value(node, at)
        if value is not None:
            return self._of_value(value, at, passed)
        if not isinstance(node, ast.Attribute):
            return NONE if isinstance(node, ast.Name) else self._of(node, at)
        places = self._methods[node.attr]
        method = self._of_function(places[0], at, passed) if len(places) == 1 else NONE
        return self._of(node.value, at) | method

    def _of_value(  # noqa: PLR0911 - a case each
        self, value: Any, at: Place, passed: Container[str | None] = ()
    ) -> Errors:
        match value:
            case type() if issubclass(value, DomainError):
                return frozenset({value}) - {DomainError}
            # The register of all errors names none of them.
            case Mapping() if value is not ERRORS:
                return self._of_value((*value.keys(), *value.values()), at)
            case tuple() | list() | set() | frozenset():
                return NONE.union(*(self._of_value(item, at) for item in value))
            case functools.partial():
                return self._of_value((value.func, *value.args), at)
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return self._of_value([getattr(value, each.name) for each in dataclasses.fields(value)], at)
        function = inspect.unwrap(value) if callable(value) else None
        if isinstance(function, FunctionType):
            return self._of_function((function.__module__, function.__qualname__), at, passed)
        return NONE

    def _of_function(self, place: Place, at: Place, passed: Container[str | None]) -> Errors:
        if place not in self._code:
            return NONE
        if place not in self._known:
            self._known[place] = NONE
            self._due[place] = None
        self._callers[place].add(at)
        arguments = self._code[place].args
        named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults = [default for name, default in named if default is not None and name.arg not in passed]
        return self._known[place] | self._all(defaults, place)


def _named(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _named(child, f"{prefix}{child.name}.")


def _subclasses(errors: Errors, kind: Any) -> Errors:
    """Return those that `except kind` catches."""
    return frozenset(error for error in errors if issubclass(error, BaseException if kind is None else kind))


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Return True if a handler raises its error again, or keeps it for later: it uses more than an attribute of it."""
    causes = {id(node.cause) for node in ast.walk(handler) if isinstance(node, ast.Raise)}
    owners = {id(node.value) for node in ast.walk(handler) if isinstance(node, ast.Attribute)}
    for node in ast.walk(handler):
        match node:
            case ast.Call(func=ast.Name(id="str"), args=[text]):
                owners.add(id(text))
    return any(
        (isinstance(node, ast.Raise) and node.exc is None)
        or (isinstance(node, ast.Name) and node.id == handler.name and id(node) not in causes | owners)
        for node in ast.walk(handler)
    )


def _value(node: ast.expr | None, at: Place) -> Any:
    """Return the object that a global name, or a tuple of them, means; None for others."""
    match node:
        case ast.Name():
            return vars(importlib.import_module(at[0])).get(node.id, vars(builtins).get(node.id))
        case ast.Attribute():
            owner = _value(node.value, at)
            return getattr(owner, node.attr, None) if isinstance(owner, (ModuleType, type)) else None
        case ast.Tuple():
            return tuple(_value(item, at) for item in node.elts)
    return None

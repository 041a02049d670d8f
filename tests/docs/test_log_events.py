"""docs/log-events.md is the catalogue of log events: each is logged with its level, and none but these.

Other pages name only events that there are.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("core", "models", "chains", "actors", "api", "scheduler", "cli", "devstack")
LEVELS: Final = {
    "debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error",
    "critical": "critical",
}  # fmt: skip
ROW: Final = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| ([a-z, ]+) \| [^|]+\. \|$", re.MULTILINE)


def catalogue() -> dict[str, set[str]]:
    page = (ROOT / "docs" / "log-events.md").read_text(encoding="utf-8")
    by_event = {event: set(levels.split(", ")) for event, levels in ROW.findall(page)}
    assert len(by_event) == page.count("\n| `"), "a row is not of the form, or stands twice"
    assert list(by_event) == sorted(by_event)
    return by_event


def log_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, set[str]]]:
    """Yield each call of a module's structlog logger with its levels; a name may refer to one of several methods."""
    assigned = [(node.targets[0], node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    loggers = {ast.unparse(target) for target, value in assigned if "get_logger(" in ast.unparse(value)}

    def levels(node: ast.AST) -> set[str]:
        # Asking whether a level is written writes nothing.
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in loggers and node.attr != "is_enabled_for":
            return {LEVELS[node.attr]}
        return set()

    chosen = {
        ast.unparse(target): set().union(*map(levels, ast.walk(value)))
        for target, value in assigned
        if not isinstance(value, ast.Call)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (balances := levels(node.func) or chosen.get(ast.unparse(node.func))):
            yield node, balances


def test_every_logged_event_is_on_the_page_with_its_level() -> None:
    logged: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(each for folder in FOLDERS for each in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for call, levels in log_calls(ast.parse(text)) if "get_logger(" in text else ():
            where = f"{path.relative_to(ROOT)}:{call.lineno}"
            event = call.args[0] if len(call.args) == 1 else None
            assert isinstance(event, ast.Constant), f"{where}: an event is a literal, its facts are keywords"
            assert isinstance(event.value, str), where
            logged[event.value] |= levels

    assert logged, "no log call was found"
    assert logged == catalogue()


def test_other_pages_name_events_of_the_page() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    named = {event for page in pages for event in re.findall(r"`([^`]+)` in the log", page.read_text("utf-8"))}

    assert named, "no page names an event"
    assert named <= catalogue().keys()

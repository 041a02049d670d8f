"""Finds the labels at which a test may kill a signer."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]


def labels_in_code() -> set[str]:
    """Return every label that the code can reach."""
    collected = set()
    for package in ("actors", "models", "chains"):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reached":
                    assert isinstance(node.args[0], ast.Constant), f"{file}: a label is a literal"
                    collected.add(str(node.args[0].value))
    assert collected, "no label in the code: nothing would be killed"
    return collected

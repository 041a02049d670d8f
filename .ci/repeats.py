# ruff: noqa: INP001 - a script, in no package
"""Fails if eight lines in a row occur twice in the given folders. Called by `make lint`.

White space is folded. Blank lines, comments, imports and lone punctuation neither count nor interrupt a run.
"""

import ast
import re
import sys
from pathlib import Path

RUN = 8

Line = tuple[int, str]


def main(folders: list[str]) -> None:
    """Print the place of each repeated run, and exit 1 if there is one."""
    files = sorted({file for folder in folders for file in Path(folder).rglob("*.py")})
    if not files:
        sys.exit("no Python file found: nothing was compared")
    reports = repeats({file: counted(file.read_text(encoding="utf-8")) for file in files})
    if reports:
        sys.exit("\n".join(f"{line}: {RUN} lines or more occur twice" for line in reports))


def counted(text: str) -> list[Line]:
    """Return the lines of a file that count, with their numbers."""
    imports = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in lines
        if number not in imports and not line.startswith("#") and re.search(r"\w", line)
    ]


def repeats(files: dict[Path, list[Line]]) -> list[str]:
    """Return each repeated run as its place and the first one's; a longer run by its beginning."""
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    reports = []
    for file, lines in files.items():
        silent_until = 0
        for at in range(len(lines) - RUN + 1):
            here = file, at
            there = first.setdefault(tuple(line for _, line in lines[at : at + RUN]), here)
            # A run that overlaps itself is a list of equal rows.
            if there == here or (there[0] == file and at - there[1] < RUN):
                continue
            if at >= silent_until:
                reports.append(f"{file}:{lines[at][0]} ~ {there[0]}:{files[there[0]][there[1]][0]}")
            silent_until = at + RUN
    return reports


if __name__ == "__main__":
    main(sys.argv[1:])

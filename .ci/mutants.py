# ruff: noqa: INP001 - a script, in no package
"""Removes guards one at a time, and reports those whose absence no test notices: `make mutants ARGS="models/ledger"`.

A guard is an `if` that ends in a return, raise, continue or break, or a condition behind AND in an SQL statement. Each
mutant runs in a copy of the project against the tests of its module; if these pass, against those of its folder and of
all files that import it. Takes about ten seconds a mutant and job.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 300
# Pytest's exit code for "no tests were collected".
NO_TESTS = 5
# The condition up to the next AND or the end of its literal; one with a parameter would change their number.
CONDITION = re.compile(
    r" AND (?:NOT )?(?P<text>[^%\"]+?)(?= AND | ORDER BY | LIMIT | FOR | RETURNING | GROUP BY |\"|$)"
)


@dataclass(frozen=True)
class Mutant:
    """A file with one guard less."""

    path: Path
    line: int
    guard: str
    text: str


def mutants(path: Path, text: str) -> Iterator[Mutant]:
    """Yield the mutants of a file, in the order of their lines within each kind."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and _is_guard(node):
            yield Mutant(path, node.lineno, f"if {ast.unparse(node.test)}", _without(lines, node.test))
    for number, line in enumerate(lines):
        if '"' not in line or line.lstrip().startswith(("#", '"""')):
            continue
        for match in CONDITION.finditer(line):
            if _is_balanced(match["text"]):
                changed = line[: match.start()] + line[match.end() :]
                yield Mutant(
                    path, number + 1, match[0].strip(), "".join([*lines[:number], changed, *lines[number + 1 :]])
                )


def _is_guard(node: ast.If) -> bool:
    """Return True if a condition only leaves a function or loop early, and binds no name."""
    leaves = isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
    return leaves and not node.orelse and not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))


def _without(lines: list[str], test: ast.expr) -> str:
    """Return the file with an expression replaced by False. Positions count bytes."""
    text = "".join(lines).encode()
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    begin = starts[test.lineno - 1] + test.col_offset
    end = starts[(test.end_lineno or test.lineno) - 1] + (test.end_col_offset or 0)
    return (text[:begin] + b"False" + text[end:]).decode()


def _is_balanced(text: str) -> bool:
    return all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]", "{}"))


def tests_of(path: Path) -> list[list[str]]:
    """Return the tests of a module, then those of its folder and of files that import it; as far as there are any."""
    folder = Path("tests") / path.parent
    module = ".".join(path.with_suffix("").parts)
    package, _, name = module.rpartition(".")
    imports = re.compile(rf"from {re.escape(package)} import .*\b{name}\b|from {re.escape(module)} import|\"{module}\.")
    users = sorted(str(each) for each in Path("tests").rglob("test_*.py") if imports.search(each.read_text()))
    own = folder / f"test_{path.stem}.py"
    near = [str(folder)] if folder.is_dir() else []
    further = [*near, *(user for user in users if not Path(user).is_relative_to(folder))]
    return [part for part in ([str(own)] if own.exists() else [], further) if part]


def is_caught(mutant: Mutant, copy: Path) -> bool:
    """Return True if a test fails with the mutant in its place."""
    place = copy / mutant.path
    place.write_text(mutant.text, encoding="utf-8")
    try:
        return any(_fails(copy, tests) for tests in tests_of(mutant.path))
    finally:
        shutil.copy(ROOT / mutant.path, place)


def _fails(copy: Path, tests: list[str]) -> bool:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-m",
        "not soak",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own tests
            command, cwd=copy, env=environment, capture_output=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in {0, NO_TESTS}


def copied(folder: Path) -> Path:
    """Copy what git knows of the project into a folder and return it."""
    git = ["git", "ls-files", "-z"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S603
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def say(line: str) -> None:
    """Print a line at once: the whole takes long."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Try the mutants of the given files and folders, and exit 1 if one is not caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=int, help="try this many, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    os.chdir(ROOT)
    files = sorted({file for path in chosen.paths for file in ([path] if path.is_file() else path.rglob("*.py"))})
    candidates = [mutant for file in files for mutant in mutants(file, file.read_text(encoding="utf-8"))]
    if chosen.limit is not None and chosen.limit < len(candidates):
        # No secret: the same seed draws the same mutants.
        candidates = random.Random(chosen.seed).sample(candidates, chosen.limit)  # noqa: S311
    if not candidates:
        sys.exit("no guard was found")
    with tempfile.TemporaryDirectory(prefix="sluice-mutants-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(chosen.jobs):
            copies.put(copied(Path(folder) / str(number)))

        def attempt(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                caught = is_caught(mutant, copy)
            finally:
                copies.put(copy)
            if not caught:
                say(f"{mutant.path}:{mutant.line}: no test notices without: {mutant.guard}")
            return caught

        with ThreadPoolExecutor(chosen.jobs) as pool:
            caught = sum(pool.map(attempt, candidates))
    say(f"{caught} of {len(candidates)} mutants were caught")
    sys.exit(caught < len(candidates))


if __name__ == "__main__":
    main()

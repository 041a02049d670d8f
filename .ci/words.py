# ruff: noqa: INP001 - a script, in no package
"""Counts words that make prose hard to read and fails where a file has more of them. Called by `make lint`.

Reads comments and docstrings of Python files and the text of Markdown files. Code in backticks and in fenced blocks
does not count. `.ci/words.txt` lists the figure of each file that has any; an unlisted file may have none. A figure
that fell has to be written down with `--write`, so that it cannot rise again; it raises none, except that files which
are gone leave their figures to new ones. docs/language.md lists the words, with better ones.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FIGURES = Path(__file__).with_suffix(".txt")
# docs/language.md names them to avoid them; CHANGELOG.md has a form of its own.
LEFT_OUT = {"docs/language.md", "CHANGELOG.md"}
MARKERS = re.compile(
    r"\b(?:whoever|somebody|nobody|so many|so much|told|tells?|stands?|stood|beside|anew|any more|of ours)\b"
    r"|\b(?:bells?|rings?)\b"
    r"|\b(?:is|are|was|were) none\b"
    # A sentence whose subject is a clause. A question ends in its mark.
    r"|(?:^|(?<=[.:;] ))(?:what|whatever) (?=[^.?]*(?:[.]|$))",
    re.IGNORECASE | re.MULTILINE,
)
# The rest of a line from the first # on that no string of the line holds. tokenize takes twice as long.
COMMENTS = re.compile(r"""^(?:[^"'#\n]|"[^"\n]*"|'[^'\n]*')*#+ ?(.*)$""", re.MULTILINE)


def main(arguments: list[str]) -> None:
    """Compare each file with its figure; with --write, lower the figures that fell."""
    counts = {str(file): count(file) for file in sorted(files()) if str(file) not in LEFT_OUT}
    if not counts:
        sys.exit("no file there: nothing was counted")
    figures = read_figures()
    risen = [f"{name}: {n}, was {figures.get(name, 0)}" for name, n in counts.items() if n > figures.get(name, 0)]
    fallen = [f"{name}: {counts.get(name, 0)}, was {n}" for name, n in figures.items() if counts.get(name, 0) < n]
    if "--write" in arguments:
        write_figures(lowered(figures, counts))
        main([])
        return
    if risen:
        sys.exit("\n".join([*risen, "more words of docs/language.md than before: say it in plain ones"]))
    if fallen:
        sys.exit("\n".join([*fallen, "fewer than before: python .ci/words.py --write"]))


def lowered(figures: dict[str, int], counts: dict[str, int]) -> dict[str, int]:
    """Return the figures to write: none above its old one, but a new file's, as long as those of gone files last."""
    left = sum(n for name, n in figures.items() if name not in counts)
    new = {}
    for name, n in counts.items():
        inherited = 0 if name in figures else min(n, left)
        left -= inherited
        new[name] = inherited or min(figures.get(name, 0), n)
    return new


def files() -> Iterator[Path]:
    """Yield the Python and Markdown files below the current folder, without hidden and built ones."""
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name == ".ci" or not name.startswith((".", "build"))]
        yield from (Path(folder, name) for name in names if name.endswith((".py", ".md")))


def count(file: Path) -> int:
    """Count the markers in a file's prose."""
    text = file.read_text(encoding="utf-8")
    prose = [re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)] if file.suffix == ".md" else spoken(text)
    return sum(len(MARKERS.findall(re.sub(r"`[^`]*`", "``", part))) for part in prose)


def spoken(source: str) -> list[str]:
    """Return the docstrings and comments of a Python file."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return [*COMMENTS.findall(source), *(doc for node in nodes if (doc := ast.get_docstring(node)))]


def read_figures() -> dict[str, int]:
    """Return the largest number of markers that each listed file may have."""
    lines = FIGURES.read_text(encoding="utf-8").splitlines()
    return {name: int(n) for n, name in (line.split(" ", 1) for line in lines)}


def write_figures(figures: dict[str, int]) -> None:
    """Write the figures of files that have any, sorted by name."""
    FIGURES.write_text("".join(f"{n} {name}\n" for name, n in sorted(figures.items()) if n), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

# ruff: noqa: INP001 - a script, in no package
"""Checks the form of the records in docs/decisions and writes their index. Called by `make lint`.

A record is `docs/decisions/<subject>.md`: its title is the decision, a line `Replaces:` names the numbers of older
records that it took over, a sentence sums it up, and then come Context, of five sentences at most, Decision and Price.
`README.md` there is the index: `--write` writes it, and without that an index that differs fails.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("docs/decisions")
INDEX = FOLDER / "README.md"
SENTENCES_MAX = 5
FORM = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?:Replaces: (?P<replaces>[^\n]+)\.\n\n)?(?P<summary>[^\n#]+)\n\n"
    r"## Context\n\n(?P<context>[^#]+?)\n\n## Decision\n\n(?P<decision>.+?)\n\n## Price\n\n(?P<price>[^#]+)",
    re.DOTALL,
)
SUBJECT = re.compile(r"[a-z]+(?:-[a-z]+)*")
NUMBER = re.compile(r"(\d{4})( \(in part\))?")


@dataclass(frozen=True)
class Record:
    """A record: whole and in part are the numbers of older records that it replaces."""

    subject: str
    title: str
    summary: str
    whole: tuple[str, ...]
    in_part: tuple[str, ...]


def main(arguments: list[str]) -> None:
    """Check all records; with --write, write the index, else compare it."""
    records = [read(file) for file in sorted(FOLDER.glob("*.md")) if file != INDEX]
    if not records:
        sys.exit("no record there: nothing was checked")
    text = index(records)
    if "--write" in arguments:
        INDEX.write_text(text, encoding="utf-8")
    elif not INDEX.exists() or INDEX.read_text(encoding="utf-8") != text:
        sys.exit(f"{INDEX} differs from the records: python .ci/decisions.py --write")


def read(file: Path) -> Record:
    """Return a record; ends the program if its form is wrong."""
    parts = FORM.fullmatch(file.read_text(encoding="utf-8"))
    if not SUBJECT.fullmatch(file.stem) or parts is None:
        sys.exit(f"{file}: not in the form of a record, which .ci/decisions.py describes")
    sentences = len(re.findall(r"[.!?](?=\s|$)", parts["context"]))
    if sentences > SENTENCES_MAX:
        sys.exit(f"{file}: {sentences} sentences of context, at most {SENTENCES_MAX}")
    if not re.search(r"^(?:-|\d\.) ", parts["decision"], re.MULTILINE) or not parts["price"].startswith("- "):
        sys.exit(f"{file}: write decision and price as bullets")
    numbers = [NUMBER.fullmatch(word) for word in (parts["replaces"] or "").split(", ") if word]
    if None in numbers:
        sys.exit(f"{file}: Replaces: is a list such as 0012, 0047 (in part)")
    pairs = [number.groups() for number in numbers if number]
    return Record(
        subject=file.stem,
        title=parts["title"],
        summary=parts["summary"],
        whole=tuple(number for number, in_part in pairs if not in_part),
        in_part=tuple(number for number, in_part in pairs if in_part),
    )


def index(records: list[Record]) -> str:
    """Return the index: a row for each record, and one for each older number."""
    rows = [f"| [{record.subject}]({record.subject}.md) | {record.title} | {record.summary} |" for record in records]
    return "\n".join(
        [
            "# Decisions",
            "",
            "A record for each subject: context, decision, price. A new decision goes into its subject's record.",
            "",
            "| Record | Decision | In short |",
            "|---|---|---|",
            *rows,
            "",
            "## Older numbers",
            "",
            "Decisions had numbers once. These records have their rules now.",
            "",
            "| Number | Record |",
            "|---|---|",
            *(f"| {number} | {links} |" for number, links in older(records)),
            "",
        ]
    )


def older(records: list[Record]) -> list[tuple[str, str]]:
    """Return each older number with its records, first the one that replaces it whole; ends the program if two do."""
    numbers = sorted({number for record in records for number in (*record.whole, *record.in_part)})
    rows = []
    for number in numbers:
        whole = [record.subject for record in records if number in record.whole]
        if len(whole) != 1:
            sys.exit(f"{number} is replaced whole by {whole or 'no record'}: name one")
        in_part = [record.subject for record in records if number in record.in_part]
        rows.append((number, ", ".join(f"[{subject}]({subject}.md)" for subject in [*whole, *in_part])))
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])

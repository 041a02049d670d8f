"""`sluice audit`: proves the books. Run by operators and at the end of every long test; exits 1 when they are wrong."""

from collections.abc import Iterator

import typer

from cli.output import JsonFlag, show
from cli.session import database
from models import invariants
from models.invariants import Violation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(*, as_json: JsonFlag = False) -> None:
    """Check every invariant of the stored data on one snapshot."""
    with database():
        violations = invariants.check()
    found = [
        {
            "name": violation.name,
            "meaning": violation.meaning,
            "rows": [[str(v) for v in row] for row in violation.rows],
        }
        for violation in violations
    ]
    document = {"ok": not violations, "checked": list(invariants.INVARIANTS), "violations": found}
    show(document, list(_lines(violations)), as_json=as_json)
    raise typer.Exit(1 if violations else 0)


def _lines(violations: list[Violation]) -> Iterator[str]:
    if not violations:
        yield f"{len(invariants.INVARIANTS)} invariants hold"
    for violation in violations:
        yield f"BROKEN {violation.name}: {violation.meaning}"
        yield from (f"    {'  '.join(map(str, row))}" for row in violation.rows)

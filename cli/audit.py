"""`sluice audit`: proves the books. Run by operators and at the end of every long test; exits 1 if they are wrong.

It also shows the last comparisons with the chain, which a running gateway makes; a confirmed difference counts too.
"""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from cli.output import JsonFlag, show
from cli.session import database
from cli.shell.progress import progress
from cli.treasury.commands import comparison, comparison_line
from models.invariants import deposits
from models.invariants.deposits import Violation
from models.treasury import reconciliation
from models.treasury.reconciliation import MISSES_MAX

# The first checkpoint is made within this time, however long the ledger is.
ADVANCE_S: Final = 600.0


def audit(
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Read the whole ledger too, and compare its checkpoint.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check every invariant of the stored data in one snapshot, and show the last comparisons with the chain."""
    with database() as settings:
        with progress("audit of the whole ledger" if full else "audit"):
            violations = deposits.audit(is_full=full, within_s=ADVANCE_S)
        catalogue = settings.catalogue
        compared = [comparison(catalogue, kept) for kept in reconciliation.listing()]
    wrong = [each for each in compared if each["misses"] >= MISSES_MAX and each["place"] != "cold"]
    is_ok = not violations and not wrong
    shown = [
        {
            "name": violation.name,
            "meaning": violation.meaning,
            "rows": [[str(v) for v in row] for row in violation.rows],
        }
        for violation in violations
    ]
    document = {
        "ok": is_ok,
        "checked": list(deposits.named(is_full=full)),
        "violations": shown,
        "reconciliations": compared,
    }
    show(document, [*_lines(violations, is_full=full), *map(comparison_line, compared)], as_json=as_json)
    raise typer.Exit(0 if is_ok else 1)


def _lines(violations: list[Violation], *, is_full: bool) -> Iterator[str]:
    if not violations:
        yield f"{len(deposits.named(is_full=is_full))} invariants hold"
    for violation in violations:
        yield f"BROKEN {violation.name}: {violation.meaning}"
        yield from (f"    {'  '.join(map(str, row))}" for row in violation.rows)

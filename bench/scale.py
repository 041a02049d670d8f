"""Counts the rows that each query reads in large tables: `python -m bench.scale`, with `--quick` for small ones.

large/scale.sql makes a gateway of a million invoices, deposits and payouts in a temporary PostgreSQL. Then every list,
look-up, due-scan, gauge, retention step and invariant runs as in the product, and PostgreSQL reports the rows that each
statement read (auto_explain, with nested statements). Fails if one reads more than it may.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg2

from bench.large.queries import Step, steps
from bench.measuring.own_database import own_database
from models.db import base
from models.db.migrate import migrate
from models.invariants import checkpoint

ROWS: Final = 1_000_000
ROWS_QUICK: Final = 100_000
SHOPS: Final = 2_000
# Rows that may be read for each row that is returned.
READ_MAX: Final = 20
# And in addition: small tables are read whole, such as the 512 blocks kept for reorgs, a row for each merchant, and
# open rows.
SMALL: Final = 1_000 + SHOPS

_FILL: Final = Path(__file__).with_name("large") / "scale.sql"
_INDEXES: Final = (
    "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class t ON t.oid = indrelid"
    " WHERE NOT indisunique AND t.relnamespace = 'public'::regnamespace"
)
_EXPLAIN: Final = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_nested_statements": "on",
    # Sent to the session itself.
    "auto_explain.log_level": "notice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The rows that a statement read, and those that it returned or wrote."""

    text: str
    read: int
    returned: int
    took_ms: float


class Plans:
    """Collects PostgreSQL's notices about its plans; takes the place of a connection's list."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []

    def append(self, notice: str) -> None:
        head, _, plan = notice.partition("plan:\n")
        if plan:
            document = json.loads(plan)
            took_ms = float(head.partition("duration: ")[2].partition(" ms")[0])
            self.readings.append(
                Reading(
                    text=document["Query Text"],
                    read=rows_read(document["Plan"]),
                    returned=rows_given(document["Plan"]),
                    took_ms=took_ms,
                )
            )


def rows_read(plan: dict[str, Any]) -> int:
    """Return how many table rows a plan read, with those that it filtered out."""
    own = 0
    if "Relation Name" in plan and plan["Node Type"] != "ModifyTable":
        kept = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        own = round(sum(plan.get(name, 0) for name in kept) * plan["Actual Loops"])
    return own + sum(rows_read(child) for child in plan.get("Plans", ()))


def rows_given(plan: dict[str, Any]) -> int:
    """Return how many rows a statement returned or, without a result, wrote."""
    if plan["Node Type"] == "ModifyTable":
        plan = next((part for part in plan.get("Plans", ()) if part["Parent Relationship"] == "Outer"), plan)
    given: float = plan["Actual Rows"] * plan["Actual Loops"]
    return round(given)


def fill(url: str, count: int) -> None:
    """Make the large tables. Their indexes are made afterwards, which is faster."""
    session = psycopg2.connect(url)
    session.autocommit = True
    with contextlib.closing(session), session.cursor() as cursor:
        cursor.execute(_INDEXES)
        indexes = cursor.fetchall()
        cursor.execute("; ".join(f"DROP INDEX {name}" for name, _ in indexes))
        cursor.execute("SET work_mem = '256MB'; SET maintenance_work_mem = '512MB'")
        cursor.execute(_FILL.read_text(encoding="utf-8"), {"rows": count, "shops": SHOPS})
        for _, definition in indexes:
            cursor.execute(definition)
        cursor.execute("VACUUM (ANALYZE)")
        for name, value in _EXPLAIN.items():
            cursor.execute(f"ALTER DATABASE postgres SET {name} = %s", (value,))


def watched(step: Step) -> list[Reading]:
    """Run a step, and return the rows that its statements read."""
    plans = Plans()
    base.one("SELECT 1")
    base.db.connection().notices = plans
    step.run()
    base.db.connection().notices = []
    return [reading for reading in plans.readings if reading.read]


def allowed(step: Step, reading: Reading) -> int:
    """Return how many rows a statement may read."""
    return READ_MAX * max(reading.returned, 1) + SMALL + 2 * step.adds_up


def measure(count: int) -> Iterator[str]:
    """Run all steps, print the rows of each, and yield the names of those that read too many."""
    print(f"\n{'':<56}{'read':>10}{'given':>8}{'ms':>9}")
    for step in steps(count, SHOPS):
        readings = watched(step)
        worst = max(readings, key=lambda each: each.read / allowed(step, each), default=None)
        if worst is None:
            print(f"  {step.name:<54}{0:>10}{0:>8}{0.0:>9.1f}")
            continue
        is_over = worst.read > allowed(step, worst)
        verdict = "" if not is_over else f"  {step.exempt or 'TOO MANY'}"
        took_ms = sum(each.took_ms for each in readings)
        print(f"  {step.name:<54}{worst.read:>10,}{worst.returned:>8,}{took_ms:>9.1f}{verdict}")
        if is_over and not step.exempt:
            yield step.name


def run(url: str, count: int) -> list[str]:
    """Fill a database and measure; return the names of queries that read too many rows."""
    began = time.perf_counter()
    migrate(url)
    fill(url, count)
    base.connect(url, statement_timeout_ms=0)
    # An audit begins at the last checkpoint.
    checkpoint.advance(within_s=600)
    print(f"{count:,} invoices made in {time.perf_counter() - began:.0f} s")
    return list(measure(count))


def main() -> None:
    """Measure in a temporary server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{ROWS_QUICK:,} invoices")
    count = ROWS_QUICK if parser.parse_args().quick else ROWS
    with own_database() as url:
        over = run(url, count)
    sys.exit(f"\nread too much: {', '.join(over)}" if over else 0)


if __name__ == "__main__":
    main()

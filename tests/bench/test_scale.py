"""The number of rows that a plan read, with those that it filtered out, is read from the plan."""

import json
from typing import Any

from bench.large.queries import Step
from bench.scale import READ_MAX, SMALL, Plans, Reading, allowed

STEP = Step(name="a list", run=lambda: None)


def scan(kept: float, removed: float = 0, *, loops: int = 1, **more: Any) -> dict[str, Any]:
    counts = {"Actual Rows": kept, "Rows Removed by Filter": removed, "Actual Loops": loops}
    return {"Node Type": "Index Scan", "Relation Name": "invoices", "Parent Relationship": "Outer"} | counts | more


def reading(plan: dict[str, Any]) -> Reading:
    plans = Plans()
    plans.append("NOTICE:  duration: 1.5 ms  plan:\n" + json.dumps({"Query Text": "SELECT", "Plan": plan}))
    return plans.readings[0]


def test_filtered_rows_count_in_every_loop() -> None:
    nested = {
        "Node Type": "Nested Loop",
        "Actual Rows": 4,
        "Actual Loops": 1,
        "Plans": [scan(1, 9), scan(2, 1, loops=2)],
    }

    assert reading(nested) == Reading(text="SELECT", read=16, returned=4, took_ms=1.5)


def test_a_write_returns_the_rows_that_it_wrote() -> None:
    before = scan(7) | {"Parent Relationship": "InitPlan"}
    write = {"Node Type": "ModifyTable", "Relation Name": "calls", "Actual Rows": 0, "Actual Loops": 1}

    assert reading(write | {"Plans": [before, scan(3, 2)]}) == Reading(text="SELECT", read=12, returned=3, took_ms=1.5)


def test_another_notice_is_no_plan() -> None:
    plans = Plans()
    plans.append("NOTICE:  table does not exist, skipping")

    assert not plans.readings


def test_a_statement_may_read_a_limited_number_for_each_returned_row() -> None:
    assert allowed(STEP, reading(scan(10))) == 10 * READ_MAX + SMALL
    assert allowed(STEP, reading(scan(0))) == READ_MAX + SMALL

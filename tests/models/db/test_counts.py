"""The sum of all counts never falls: not while processes end, pause, are folded or lose PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.logs import counters
from core.logs.counters import Counters, Series
from models.db import base, counts
from models.db.base import StoreUnavailableError, execute, value
from models.db.counts import QUIET_MAX_S, Reporter
from models.db.rows import ProcessCounts

pytestmark = pytest.mark.usefixtures("database")
ENDED: Final = ("sluice_payouts_ended", ("confirmed",))


class Process:
    """A process of the test's, with counters of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counters, self.reporter = Counters(), Reporter("test")
        self._monkeypatch = monkeypatch

    def count(self, by: int = 1) -> None:
        self.counters.count(ENDED[0], *ENDED[1], by=by)

    def push(self) -> None:
        with self._monkeypatch.context() as patch:
            patch.setattr(counters._Process, "counters", self.counters)
            self.reporter.push()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Process]:
    return lambda: Process(monkeypatch)


def age_all() -> None:
    execute("UPDATE process_counts SET noted_at = noted_at - make_interval(secs => %s)", (QUIET_MAX_S + 1,))


def total() -> int:
    return counts.read().get(ENDED, [0])[0]


def test_every_process_is_in_the_sum(start: Callable[[], Process]) -> None:
    for by in (1, 2, 3):
        process = start()
        process.count(by)
        process.push()

    assert total() == 6


def test_a_process_replaces_its_row_so_that_a_write_may_be_repeated(start: Callable[[], Process]) -> None:
    process = start()
    for expected in (1, 2, 3):
        process.count()
        process.push()
        process.push()
        assert total() == expected

    assert value("SELECT count(*) FROM process_counts") == 1


def test_nothing_is_written_if_nothing_was_counted(start: Callable[[], Process]) -> None:
    process = start()
    process.push()
    assert value("SELECT count(*) FROM process_counts") == 0
    process.count()
    process.push()
    before = value("SELECT xmin::text FROM process_counts")
    process.push()

    assert value("SELECT xmin::text FROM process_counts") == before


def test_the_processor_time_is_written_with_the_counts(start: Callable[[], Process]) -> None:
    process = start()
    process.count()
    process.push()

    assert counts.read()["sluice_process_cpu_seconds", ("test",)][0] > 0


def test_rows_of_ended_processes_are_added_up_and_leave(start: Callable[[], Process]) -> None:
    for _ in range(3):
        process = start()
        process.count()
        process.push()
    assert counts.fold(limit=10) == 0
    age_all()

    assert (counts.fold(limit=2), total(), counts.fold(limit=2), total()) == (2, 3, 1, 3)
    assert value("SELECT count(*) FROM process_counts") == 1


def test_a_process_that_was_counted_as_ended_goes_on(start: Callable[[], Process]) -> None:
    process = start()
    for expected in (5, 10, 15):
        process.count(5)
        process.push()
        assert total() == expected
        age_all()
        counts.fold(limit=10)
        assert total() == expected


def test_a_process_that_writes_while_its_row_is_folded_loses_nothing(
    start: Callable[[], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start()
    process.count()
    process.push()
    age_all()
    process.count()
    add = counters.added

    def push() -> None:
        try:
            process.push()
        finally:
            base.close()

    def add_slowly(parts: Iterable[Series]) -> Series:
        monkeypatch.setattr(counters, "added", add)
        other.start()
        # It waits for the row; without its lock it would be done by now.
        other.join(0.3)
        return add(parts)

    other = threading.Thread(target=push)
    monkeypatch.setattr(counters, "added", add_slowly)
    counts.fold(limit=10)
    other.join()

    assert total() == 2


def test_processes_that_fold_at_once_lose_nothing(start: Callable[[], Process]) -> None:
    for _ in range(20):
        process = start()
        process.count()
        process.push()
    age_all()

    def fold(_number: int) -> int:
        try:
            return counts.fold(limit=7)
        finally:
            base.close()

    with ThreadPoolExecutor(4) as threads:
        folded = list(threads.map(fold, range(4)))

    assert sum(folded) == 20
    assert total() == 20


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(["count", "push", "end", "age", "fold"]), st.integers(0, 2))))
def test_the_sum_never_falls(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, int]]) -> None:
    execute("DELETE FROM process_counts")
    processes = [Process(monkeypatch) for _ in range(3)]
    shown = counted = 0
    for step, number in steps:
        match step:
            case "count":
                processes[number].count()
                counted += 1
            case "push":
                processes[number].push()
            case "end":
                processes[number].push()
                processes[number] = Process(monkeypatch)
            case "age":
                age_all()
            case "fold":
                counts.fold(limit=2)
        assert shown <= (shown := total()) <= counted
    for process in processes:
        process.push()
    assert total() == counted


@pytest.mark.parametrize("stored", [
    [], {}, 1, ["sluice_payouts_ended"], [1, [], [1]], ["sluice_payouts_ended", ["confirmed"], []],
    ["sluice_payouts_ended", ["confirmed"], [1, 2]], ["sluice_payouts_ended", ["confirmed"], ["1"]],
    ["sluice_payouts_ended", ["confirmed"], [True]], ["sluice_payouts_ended", [], [1]],
    ["sluice_payouts_ended", [{}], [1]], ["sluice_payouts_ended", "c", [1]], [[], ["confirmed"], [1]],
])  # fmt: skip
def test_what_is_no_series_is_left_out_alone(start: Callable[[], Process], stored: object) -> None:
    process = start()
    process.count(3)
    process.push()
    if isinstance(stored, dict | int):
        ProcessCounts(process=uuid4(), series=stored).write()
    ProcessCounts(process=uuid4(), series=[stored, ["sluice_payouts_ended", ["confirmed"], [4]]]).write()

    assert total() == 7


def test_metrics_of_another_version_are_left_out() -> None:
    execute(
        "INSERT INTO process_counts (process, series) VALUES (gen_random_uuid(), %s)",
        ('[["sluice_gone", ["x"], [1]], ["sluice_payouts_ended", ["confirmed"], [2]]]',),
    )

    assert counts.read() == {ENDED: [2]}


def test_a_database_that_takes_no_write_costs_a_push_alone(start: Callable[[], Process]) -> None:
    process = start()
    process.count()
    execute("SET default_transaction_read_only = on")
    counters.count(ENDED[0], *ENDED[1])
    counts.push()
    assert total() == 0
    execute("SET default_transaction_read_only = off")
    counts.push()

    assert total() == 1


def test_a_first_write_whose_end_is_unknown_is_not_counted_twice(
    start: Callable[[], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = ProcessCounts.write

    def cut(row: ProcessCounts, *args: str) -> None:
        written(row, *args)
        raise StoreUnavailableError("cut at COMMIT")

    process = start()
    process.count()
    with monkeypatch.context() as patch:
        patch.setattr(ProcessCounts, "write", cut)
        with pytest.raises(StoreUnavailableError):
            process.push()
    process.count()
    process.push()

    assert total() == 2


def test_a_first_write_that_failed_is_made_up_for(
    start: Callable[[], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_row: ProcessCounts, *_args: str) -> None:
        raise StoreUnavailableError("away")

    process = start()
    process.count()
    process.push()
    age_all()
    counts.fold(limit=10)
    process.count()
    with monkeypatch.context() as patch:
        patch.setattr(ProcessCounts, "write", refuse)
        with pytest.raises(StoreUnavailableError):
            process.push()
    process.count()
    process.push()

    assert total() == 3

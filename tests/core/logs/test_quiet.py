"""Lines that repeat are written once a minute, and a store's outage is one line and its end another."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import structlog

from core.logs import counters, outages
from core.logs.outages import EVERY_S, StoreAwayError, note_away, note_back, note_refusal
from core.logs.quiet import CONSEQUENCES, KEYS_MAX, Quiet
from tests.docs.test_log_events import catalogue


def record(event: str, level: int = logging.WARNING, **facts: Any) -> logging.LogRecord:
    return logging.LogRecord("sluice", level, "", 0, {"event": event, **facts}, (), None)


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def quiet(clock: list[float]) -> Quiet:
    return Quiet(clock=lambda: clock[0])


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(outages._Process.away, "Redis", (0.0, True))


def test_a_warning_is_written_once_a_minute_with_the_number_left_out(quiet: Quiet, clock: list[float]) -> None:
    written = []
    for second in range(0, 130, 10):
        clock[0] = float(second)
        line = record("x.failed", request_id=str(second), network="bsc")
        if quiet.filter(line):
            written.append((second, line.repeated))  # type: ignore[attr-defined]

    assert written == [(0, 0), (60, 5), (120, 5)]
    assert counters.snapshot() == {("sluice_log_lines", ("warning",)): [3]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (record("a.failed"), record("b.failed")),
        (record("a.failed", row="1"), record("a.failed", row="2")),
        (record("a.failed"), record("a.failed", logging.ERROR)),
        (record("a.failed", exc_info=ValueError("1")), record("a.failed", exc_info=ValueError("2"))),
        (logging.LogRecord("dramatiq", 40, "", 0, "failed %s", ("a",), None),
         logging.LogRecord("dramatiq", 40, "", 0, "failed %s", ("b",), None)),
    ],
)  # fmt: skip
def test_lines_that_differ_are_all_written(quiet: Quiet, first: logging.LogRecord, second: logging.LogRecord) -> None:
    assert [quiet.filter(each) for each in (first, second, first)] == [True, True, False]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.CRITICAL])
def test_critical_lines_and_those_below_warnings_are_all_written(quiet: Quiet, level: int) -> None:
    assert [quiet.filter(record("a.done", level)) for _ in range(3)] == [True] * 3


def test_a_bounded_number_of_lines_is_remembered(quiet: Quiet) -> None:
    for number in range(3 * KEYS_MAX):
        assert quiet.filter(record("a.failed", row=str(number)))

    assert len(quiet._written) <= KEYS_MAX


@pytest.mark.usefixtures("redis_away")
def test_while_a_store_is_away_lines_that_repeat_it_are_left_out(quiet: Quiet) -> None:
    assert not any(quiet.filter(record(event)) for event in CONSEQUENCES)
    assert not quiet.filter(record("request.answered", status=503))
    assert quiet.filter(record("request.answered", logging.INFO, status=404))
    assert quiet.filter(record("payout.postponed"))


def test_without_an_outage_they_are_written(quiet: Quiet) -> None:
    assert all(quiet.filter(record(event)) for event in CONSEQUENCES)
    assert quiet.filter(record("request.answered", status=503))


def test_the_named_lines_are_events() -> None:
    assert catalogue().keys() >= CONSEQUENCES


def refuse(code: str) -> Exception:
    error = OSError("refused")
    error.pgcode = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("cause", [StoreAwayError("gone"), refuse("25006"), refuse("53100")])
def test_tracebacks_of_a_store_s_absence_are_left_out(quiet: Quiet, cause: Exception) -> None:
    def verdicts() -> list[bool]:
        try:
            raise LookupError("a step") from cause
        except LookupError as error:
            given = (LookupError, error, error.__traceback__)
            return [
                quiet.filter(record("step.failed", logging.ERROR, exc_info=True)),
                quiet.filter(record("step.failed", logging.ERROR, exc_info=error)),
                quiet.filter(logging.LogRecord("dramatiq", logging.ERROR, "", 0, "failed", (), given)),
                quiet.filter(record("spend.moved_otherwise", logging.CRITICAL, exc_info=error)),
            ]

    assert verdicts() == [False, False, False, True]


def test_an_error_that_is_its_own_cause_ends(quiet: Quiet) -> None:
    error = ValueError("circle")
    error.__cause__ = error

    assert quiet.filter(record("a.failed", exc_info=error))


def test_a_store_s_absence_is_one_line_and_its_return_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(outages._Process, "throttle", outages.LogThrottle(every_s=EVERY_S))
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            note_away("PostgreSQL", "refused\nat the second line")
        assert outages.is_any_away()
        for _ in range(5):
            note_back("PostgreSQL")
        # It comes and goes within the minute.
        note_away("PostgreSQL", "refused")
        note_back("PostgreSQL")
        for _ in range(3):
            note_refusal("PostgreSQL", "read-only")

    assert [(line["event"], line.get("reason")) for line in lines] == [
        ("store.away", "refused"),
        ("store.back", None),
        ("store.refused", "read-only"),
    ]
    assert not outages.is_any_away()


def test_a_command_leaves_outages_to_its_own_line() -> None:
    command = Quiet(is_command=True)

    assert not any(command.filter(record(event, logging.ERROR)) for event in ("store.away", "store.back"))
    assert command.filter(record("payout.postponed"))

"""Notices a clock that was set back, and makes rows due that wait for a later time."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from models.db import clock
from models.db.base import execute, one, rows

pytestmark = pytest.mark.usefixtures("database")


def pass_time(seconds: int) -> None:
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [(0, [True]), (75, [True]), (76, [False]), (-clock.FUTURE_MAX_S, [True]), (-clock.FUTURE_MAX_S - 1, [False])],
)
def test_a_time_counts_as_recent_until_its_age_and_slightly_ahead(age_s: int, expected: list[bool]) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert [clock.is_recent(now - timedelta(seconds=age_s), now, 75)] == expected
    assert not clock.is_recent(None, now, 75)


def test_a_clock_is_set_back_only_if_it_is_well_behind_the_last_reading() -> None:
    assert clock.set_back_s() == 0
    clock.mark()
    pass_time(-30)
    assert clock.set_back_s() == 0
    pass_time(-3570)
    assert 3590 < clock.set_back_s() <= 3600
    clock.mark()
    assert clock.set_back_s() == 0


def test_rows_that_wait_in_the_future_become_due_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "PORTION", 2)
    for name in ("a", "b", "c"):
        execute("INSERT INTO rate_sources (source, ask_at) VALUES (%s, app_now() + interval '2 hours')", (name,))
    execute("INSERT INTO rate_sources (source, ask_at) VALUES ('d', app_now() - interval '1 hour')")

    assert clock.release_waits() == 3

    assert rows("SELECT count(*) FROM rate_sources WHERE ask_at <= app_now()") == [(4,)]
    assert one("SELECT ask_at < app_now() - interval '50 minutes' FROM rate_sources WHERE source = 'd'") == (True,)
    assert clock.release_waits() == 0


def test_every_column_with_a_due_time_is_known() -> None:
    waiting = re.compile(r"^(due_at|ask_at|next_attempt_at|leased_until)$")
    columns = rows(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND data_type = 'timestamp with time zone'"
    )
    assert {pair for pair in columns if waiting.match(pair[1])} <= {(wait.table, wait.column) for wait in clock.WAITS}

"""One thread reads values in use again in time, and stops when they fall out of use."""

from __future__ import annotations

import pytest

from models.db import prefetch
from models.db.prefetch import READS_MAX, ReadAhead
from tests.actors.queue.workers import eventually


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> ReadAhead:
    """Return a reader whose thread only sleeps."""
    monkeypatch.setattr(prefetch, "AHEAD_S", 3600.0)
    allowed = ReadAhead()
    allowed.allow()
    return allowed


def test_a_value_in_use_is_read_again_and_again(ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "AHEAD_S", 0.01)
    seen: list[str] = []
    ahead.note(seen.append, "a")
    thread = ahead._thread
    ahead.note(seen.append, "b")

    eventually(lambda: seen.count("a") > 2 and seen.count("b") > 2)
    assert thread is not None
    assert thread is ahead._thread
    # The thread ends with the process, which does not wait for it.
    assert thread.daemon
    ahead._used.clear()


def test_a_process_without_callers_reads_nothing_ahead() -> None:
    idle = ReadAhead()
    idle.note(print, "a")

    assert idle._thread is None
    assert not idle._used


def test_a_value_unused_for_a_minute_is_no_longer_read(ahead: ReadAhead, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    ahead.note(seen.append, "a")
    monkeypatch.setattr(prefetch, "USED_S", -1.0)
    ahead.read_all()

    assert seen == []
    assert not ahead._used


def test_a_failing_read_does_not_stop_the_others(ahead: ReadAhead) -> None:
    seen: list[str] = []

    def fail() -> None:
        raise ConnectionError

    ahead.note(fail)
    ahead.note(seen.append, "a")
    ahead.read_all()
    ahead.read_all()

    assert seen == ["a", "a"]


def test_the_number_of_values_read_ahead_is_bounded(ahead: ReadAhead) -> None:
    seen: list[str] = []
    for number in range(READS_MAX + 5):
        ahead.note(seen.append, str(number))
    ahead.read_all()

    assert len(seen) == READS_MAX

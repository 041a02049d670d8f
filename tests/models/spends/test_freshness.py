"""Decides by the scan's looks, halts and starts whether it has read what the rows may lack."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from models.db.base import execute, rows, value
from models.deposits import cursors
from models.deposits.cursors import Look
from models.spends import freshness, signing_stops
from tests.models.builders import Chain, reach_head
from tests.models.payouts.held import funded, payout

LONG_AGO = "pg_postmaster_start_time() - interval '2 minutes'"


@pytest.fixture(autouse=True)
def _process(database: str) -> Iterator[None]:
    """Run as a signer whose scan runs."""
    del database
    freshness._Process.began_s = 0.0
    # So that the test's times are after the start of the database's server.
    execute("UPDATE app_clock SET ahead = interval '1 hour'")
    Chain()
    reach_head()
    yield
    freshness._Process.began_s = 0.0


def head(moment: str) -> None:
    execute(f"UPDATE chain_cursors SET head_reached_at = {moment}")


def test_a_network_is_signed_for_while_its_scan_reaches_the_head() -> None:
    assert (freshness.obstacle("ethereum"), freshness.waits(["ethereum"])) == ("", [])
    assert signing_stops.doubtful() == set(), "no spend was ever signed"
    assert signing_stops.watch("ethereum") is None
    assert (signing_stops.obstacle("ethereum"), signing_stops.doubtful()) == ("", set())
    execute("UPDATE database_marks SET timeline = '00000000'")
    assert (signing_stops.obstacle("ethereum"), signing_stops.doubtful()) == (
        signing_stops.ANOTHER_DATABASE,
        {"ethereum"},
    )


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        pytest.param("NULL", freshness.STALE, id="no look yet"),
        pytest.param("app_now() - interval '61 seconds'", freshness.STALE, id="long ago"),
        pytest.param("app_now() + interval '5 seconds'", freshness.STALE, id="a clock that went back"),
        pytest.param("app_now() - interval '50 seconds'", "", id="within a minute"),
    ],
)
def test_a_head_reached_long_ago_or_never_does_not_count(moment: str, reason: str) -> None:
    head(moment)
    assert freshness.obstacle("ethereum") == reason
    assert [wait.reason for wait in freshness.waits(["ethereum", "bsc"])] == [reason] * bool(reason)


def test_a_halted_or_unstarted_scan_is_waited_for() -> None:
    cursors.halt("ethereum", "a test")
    assert freshness.obstacle("ethereum") == f"{freshness.HALTED}a test"
    assert freshness.obstacle("bsc") == freshness.STALE
    assert signing_stops.doubtful() == set(), "every signed spend has its row"


def test_a_scan_before_the_signers_start_does_not_count() -> None:
    freshness.begin()
    assert [freshness.obstacle(network) for network in ("ethereum", "bsc")] == [freshness.UNREAD] * 2
    head("NULL")
    assert freshness.obstacle("ethereum") == freshness.UNREAD, "the wait has only begun"
    head("app_now() - interval '10 seconds'")
    assert freshness.waits(["ethereum"]) == [], "another process does not know the signer's start"
    reach_head()
    assert freshness.obstacle("ethereum") == ""
    child = os.fork()
    if child == 0:
        os._exit(freshness._Process.began_s < freshness.time.monotonic() - 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_scan_before_the_databases_start_does_not_count() -> None:
    execute(f"UPDATE app_clock SET ahead = {LONG_AGO} - clock_timestamp()")
    reach_head()
    assert freshness.obstacle("ethereum") == freshness.UNREAD


def test_rows_are_doubted_from_the_databases_start_until_the_scan_has_looked() -> None:
    """A cheque that was paid in the lost time may be due for expiry before the scan looks."""
    for looked_at, moved_at in ((LONG_AGO, "app_now()"), ("NULL", LONG_AGO)):
        execute(f"UPDATE chain_cursors SET looked_at = {looked_at}, moved_at = {moved_at}")
        assert signing_stops.doubtful() == {"ethereum"}
        assert signing_stops.look("ethereum") is not None
        assert signing_stops.doubtful() == {"ethereum"}, "it found a gap"
        execute("DELETE FROM signing_stops")
        assert signing_stops.doubtful() == set()


def test_rows_are_doubted_for_over_an_hour_without_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """With workers stopped for an hour after a restore, a cheque paid in the lost time would expire."""
    Chain("bsc")
    execute(f"UPDATE chain_cursors SET looked_at = {LONG_AGO}")
    monkeypatch.setattr(cursors, "UNSEEN", cursors.UNSEEN.replace(f"{cursors.UNSEEN_MAX_S} seconds", "0 seconds"))
    assert signing_stops.doubtful() == {"ethereum", "bsc"}

    assert signing_stops.look("bsc") is not None
    execute("DELETE FROM signing_stops")
    assert signing_stops.doubtful() == set(), "the other network is not served"


def test_payouts_that_waited_for_the_scan_are_due_once_it_has_read_on() -> None:
    order = payout(funded(), status="approved")
    signing_stops.tell_payouts("ethereum", freshness.STALE)
    execute("UPDATE payouts SET due_at = app_now() + interval '1 hour'")
    assert rows("SELECT wait_reason FROM payouts") == [(f"signing is stopped: {freshness.STALE}",)]
    signing_stops.wake_payouts("ethereum")
    assert rows("SELECT id, wait_reason, due_at <= app_now() FROM payouts") == [(order.id, "", True)]


# Looks of the scan -----------------------------------------------------------------------------------------


def look(seconds_ago: float = 10_000) -> bool:
    answer = cursors.look("ethereum", seconds_ago=seconds_ago)
    assert isinstance(answer, Look)
    return answer.is_after_gap


@pytest.mark.parametrize(
    ("moment", "is_after_gap"),
    [
        pytest.param("app_now() - interval '3 seconds'", False, id="it runs"),
        pytest.param(LONG_AGO, True, id="the server was started since"),
        pytest.param("app_now() + interval '2 minutes'", True, id="a clock that went back"),
        pytest.param("app_now() + interval '1 second'", False, id="a clock that was corrected"),
    ],
)
def test_a_look_reports_whether_the_database_may_have_gone_back_since_the_last(
    moment: str, *, is_after_gap: bool
) -> None:
    execute(f"UPDATE chain_cursors SET looked_at = {moment}")
    assert [look(), look()] == [is_after_gap, False]


def test_a_pause_of_the_scan_alone_is_not_a_gap_of_the_database() -> None:
    execute("UPDATE app_clock SET ahead = interval '2 hours'")
    assert not look()
    assert cursors.look("bsc", seconds_ago=0) is None, "that scan has not begun"


def test_a_look_older_than_the_process_knows_was_restored_with_the_database() -> None:
    execute("UPDATE app_clock SET ahead = interval '2 hours'")
    assert (look(3_600), look(3_600)) == (False, False), "this process had paused"
    execute("UPDATE chain_cursors SET looked_at = app_now() - interval '63 seconds'")
    assert look(2), "a look two seconds ago would be stored"
    freshness.begin()
    execute("UPDATE chain_cursors SET looked_at = app_now() - interval '63 seconds'")
    assert signing_stops.look("ethereum") is not None
    assert signing_stops.doubtful() == {"ethereum"}, "a new process doubts it too"


def test_before_the_first_look_the_cursors_last_move_counts() -> None:
    execute(f"UPDATE chain_cursors SET looked_at = NULL, moved_at = {LONG_AGO}")
    assert look()


def test_a_head_is_reached_if_the_newest_block_is_young_and_is_written_rarely() -> None:
    head("NULL")
    now = value("SELECT app_now()")
    execute("UPDATE chain_cursors SET block_time = clock_timestamp() - interval '5 minutes'")
    at = cursors.read("ethereum")
    assert at is not None
    cursors.reach_head("ethereum", at=at, asked_at=now, age_max_s=288)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(None,)], "the nodes may have gone back"
    cursors.reach_head("ethereum", at=replace(at, hash="0xother"), asked_at=now, age_max_s=301)
    cursors.reach_head("ethereum", at=replace(at, height=at.height + 1), asked_at=now, age_max_s=301)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(None,)], "the cursor is elsewhere"
    cursors.reach_head("ethereum", at=at, asked_at=now, age_max_s=301)
    later = value("SELECT %s + interval '1 second'", (now,))
    cursors.reach_head("ethereum", at=at, asked_at=later, age_max_s=301)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(now,)]
    cursors.reach_head("ethereum", at=at, asked_at=value("SELECT %s + interval '3 seconds'", (now,)), age_max_s=301)
    assert rows("SELECT head_reached_at > %s FROM chain_cursors", (now,)) == [(True,)]


def test_after_a_gap_a_network_stops_and_a_restored_stop_begins_again() -> None:
    assert signing_stops.watch("ethereum") is None
    for _ in range(2):
        execute(f"UPDATE chain_cursors SET looked_at = {LONG_AGO}")
        assert signing_stops.look("ethereum") is not None
        stopped = signing_stops.read("ethereum")
        assert stopped is not None
        assert (stopped.reason, stopped.is_caught_up, stopped.age_s) == (signing_stops.AFTER_GAP, False, 0)
        execute("UPDATE signing_stops SET is_caught_up = true, stopped_at = stopped_at - interval '1 day'")
    assert signing_stops.look("ethereum") is not None
    assert rows("SELECT is_caught_up FROM signing_stops") == [(True,)], "there was no gap"
    assert signing_stops.doubtful() == {"ethereum"}
    assert signing_stops.look("bsc") is None

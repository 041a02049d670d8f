"""Whether the scan has read what the rows may lack, as each of its looks, halts and beginnings tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from models.db.base import execute, rows, value
from models.deposits import cursors
from models.deposits.cursors import Look
from models.spends import freshness, signing
from tests.models.builders import Chain, reach_head
from tests.models.payouts.held import funded, payout

LONG_AGO = "pg_postmaster_start_time() - interval '2 minutes'"


@pytest.fixture(autouse=True)
def _process(database: str) -> Iterator[None]:
    """The signer runs, and so does its scan."""
    del database
    freshness._Process.began_s = 0.0
    # So that what happens here lies behind the start of the database's server.
    execute("UPDATE app_clock SET ahead = interval '1 hour'")
    Chain()
    reach_head()
    yield
    freshness._Process.began_s = 0.0


def head(moment: str) -> None:
    execute(f"UPDATE chain_cursors SET head_reached_at = {moment}")


def test_a_network_is_signed_for_while_its_scan_reaches_the_head() -> None:
    assert (freshness.obstacle("ethereum"), freshness.waits(["ethereum"])) == ("", [])
    assert signing.doubtful() == set(), "nothing was ever signed"
    assert signing.watch("ethereum") is None
    assert (signing.obstacle("ethereum"), signing.doubtful()) == ("", set())
    execute("UPDATE database_marks SET timeline = '00000000'")
    assert (signing.obstacle("ethereum"), signing.doubtful()) == (signing.ANOTHER_DATABASE, {"ethereum"})


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        pytest.param("NULL", freshness.STALE, id="no look of this version"),
        pytest.param("app_now() - interval '61 seconds'", freshness.STALE, id="long ago"),
        pytest.param("app_now() + interval '5 seconds'", freshness.STALE, id="a clock that went back"),
        pytest.param("app_now() - interval '50 seconds'", "", id="within a minute"),
    ],
)
def test_a_head_that_was_reached_long_ago_or_never_counts_for_nothing(moment: str, reason: str) -> None:
    head(moment)
    assert freshness.obstacle("ethereum") == reason
    assert [wait.reason for wait in freshness.waits(["ethereum", "bsc"])] == [reason] * bool(reason)


def test_a_scan_that_is_halted_or_has_not_begun_is_waited_for() -> None:
    cursors.halt("ethereum", "a test")
    assert freshness.obstacle("ethereum") == f"{freshness.HALTED}a test"
    assert freshness.obstacle("bsc") == freshness.STALE
    assert signing.doubtful() == set(), "what was signed has its rows"


def test_what_was_read_before_the_signer_began_or_its_child_counts_for_nothing() -> None:
    freshness.begin()
    assert [freshness.obstacle(network) for network in ("ethereum", "bsc")] == [freshness.UNREAD] * 2
    head("NULL")
    assert freshness.obstacle("ethereum") == freshness.UNREAD, "it has only begun to wait"
    head("app_now() - interval '10 seconds'")
    assert freshness.waits(["ethereum"]) == [], "another process cannot tell"
    reach_head()
    assert freshness.obstacle("ethereum") == ""
    child = os.fork()
    if child == 0:
        os._exit(freshness._Process.began_s < freshness.time.monotonic() - 1)
    assert os.waitpid(child, 0)[1] == 0


def test_what_was_read_before_the_database_s_server_began_counts_for_nothing() -> None:
    execute(f"UPDATE app_clock SET ahead = {LONG_AGO} - clock_timestamp()")
    reach_head()
    assert freshness.obstacle("ethereum") == freshness.UNREAD


def test_rows_are_doubted_from_the_start_of_the_database_s_server_until_the_scan_has_looked() -> None:
    """A cheque that was paid in the lost time may be due for expiry before the scan looks."""
    for looked_at, moved_at in ((LONG_AGO, "app_now()"), ("NULL", LONG_AGO)):
        execute(f"UPDATE chain_cursors SET looked_at = {looked_at}, moved_at = {moved_at}")
        assert signing.doubtful() == {"ethereum"}
        assert signing.look("ethereum") is not None
        assert signing.doubtful() == {"ethereum"}, "it found a gap"
        execute("DELETE FROM signing_stops")
        assert signing.doubtful() == set()


def test_rows_are_doubted_for_more_than_an_hour_while_no_scan_looks_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are away for an hour after a restore would let a cheque expire that was paid in the lost time."""
    Chain("bsc")
    execute(f"UPDATE chain_cursors SET looked_at = {LONG_AGO}")
    monkeypatch.setattr(cursors, "UNSEEN", cursors.UNSEEN.replace(f"{cursors.UNSEEN_MAX_S} seconds", "0 seconds"))
    assert signing.doubtful() == {"ethereum", "bsc"}

    assert signing.look("bsc") is not None
    execute("DELETE FROM signing_stops")
    assert signing.doubtful() == set(), "nobody serves the other one"


def test_payouts_that_waited_for_the_scan_are_due_when_it_has_read_on() -> None:
    order = payout(funded(), status="approved")
    signing.tell_payouts("ethereum", freshness.STALE)
    execute("UPDATE payouts SET due_at = app_now() + interval '1 hour'")
    assert rows("SELECT wait_reason FROM payouts") == [(f"signing is stopped: {freshness.STALE}",)]
    signing.wake_payouts("ethereum")
    assert rows("SELECT id, wait_reason, due_at <= app_now() FROM payouts") == [(order.id, "", True)]


# What the scan notes ---------------------------------------------------------------------------------------


def look(seconds_ago: float = 10_000) -> bool:
    found = cursors.look("ethereum", seconds_ago=seconds_ago)
    assert isinstance(found, Look)
    return found.is_after_gap


@pytest.mark.parametrize(
    ("moment", "is_after_gap"),
    [
        pytest.param("app_now() - interval '3 seconds'", False, id="it runs"),
        pytest.param(LONG_AGO, True, id="the server was started since"),
        pytest.param("app_now() + interval '2 minutes'", True, id="a clock that went back"),
        pytest.param("app_now() + interval '1 second'", False, id="a clock that was corrected"),
    ],
)
def test_a_look_tells_whether_the_database_may_have_gone_back_since_the_one_before(
    moment: str, *, is_after_gap: bool
) -> None:
    execute(f"UPDATE chain_cursors SET looked_at = {moment}")
    assert [look(), look()] == [is_after_gap, False]


def test_a_pause_of_the_scan_alone_is_none_of_the_database_s() -> None:
    execute("UPDATE app_clock SET ahead = interval '2 hours'")
    assert not look()
    assert cursors.look("bsc", seconds_ago=0) is None, "its scan has not begun"


def test_a_note_that_is_older_than_what_this_process_knows_came_back_with_its_database() -> None:
    execute("UPDATE app_clock SET ahead = interval '2 hours'")
    assert (look(3_600), look(3_600)) == (False, False), "it was this process that paused"
    execute("UPDATE chain_cursors SET looked_at = app_now() - interval '63 seconds'")
    assert look(2), "of two seconds ago there would be a note"
    freshness.begin()
    execute("UPDATE chain_cursors SET looked_at = app_now() - interval '63 seconds'")
    assert signing.look("ethereum") is not None
    assert signing.doubtful() == {"ethereum"}, "so also one that has just begun"


def test_before_the_first_look_of_this_version_the_last_move_counts() -> None:
    execute(f"UPDATE chain_cursors SET looked_at = NULL, moved_at = {LONG_AGO}")
    assert look()


def test_a_head_is_reached_where_the_newest_block_is_young_and_noted_now_and_then() -> None:
    head("NULL")
    now = value("SELECT app_now()")
    execute("UPDATE chain_cursors SET block_time = clock_timestamp() - interval '5 minutes'")
    at = cursors.read("ethereum")
    assert at is not None
    cursors.reach_head("ethereum", at=at, asked_at=now, age_max_s=288)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(None,)], "nodes that went back tell it"
    cursors.reach_head("ethereum", at=replace(at, hash="0xother"), asked_at=now, age_max_s=301)
    cursors.reach_head("ethereum", at=replace(at, height=at.height + 1), asked_at=now, age_max_s=301)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(None,)], "the scan was moved from there"
    cursors.reach_head("ethereum", at=at, asked_at=now, age_max_s=301)
    later = value("SELECT %s + interval '1 second'", (now,))
    cursors.reach_head("ethereum", at=at, asked_at=later, age_max_s=301)
    assert rows("SELECT head_reached_at FROM chain_cursors") == [(now,)]
    cursors.reach_head("ethereum", at=at, asked_at=value("SELECT %s + interval '3 seconds'", (now,)), age_max_s=301)
    assert rows("SELECT head_reached_at > %s FROM chain_cursors", (now,)) == [(True,)]


def test_after_a_gap_a_network_stops_and_a_stop_that_came_back_begins_again() -> None:
    assert signing.watch("ethereum") is None
    for _ in range(2):
        execute(f"UPDATE chain_cursors SET looked_at = {LONG_AGO}")
        assert signing.look("ethereum") is not None
        stopped = signing.read("ethereum")
        assert stopped is not None
        assert (stopped.reason, stopped.is_caught_up, stopped.age_s) == (signing.AFTER_GAP, False, 0)
        execute("UPDATE signing_stops SET is_caught_up = true, stopped_at = stopped_at - interval '1 day'")
    assert signing.look("ethereum") is not None
    assert rows("SELECT is_caught_up FROM signing_stops") == [(True,)], "it was no gap"
    assert signing.doubtful() == {"ethereum"}
    assert signing.look("bsc") is None

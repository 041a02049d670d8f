"""A stop ends once the scan has caught up and no unexplained departure is left, as checked under its lock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.db.base import execute, rows, transaction, value
from models.deposits import cursors
from models.deposits.rows import ChainBlock
from models.spends import signing_stops, unexplained, unread_departures
from models.spends.signing_stops import Stop
from tests.models.db.collisions import at_once
from tests.models.spends.departures import DISMISSED, SENDER, a_departure

HOUR_S = 3_600


@pytest.fixture
def stopped(database: str) -> Stop:
    """Return a stop as the signer read it, when all was well."""
    del database
    assert signing_stops.watch("ethereum") is None
    with transaction():
        assert signing_stops.stop("ethereum", reason="a test")
    signing_stops.note_caught_up("ethereum")
    stop = signing_stops.read("ethereum")
    assert stop is not None
    assert stop.is_caught_up
    return stop


def test_the_first_concurrent_watches_stop_no_network(database: str) -> None:
    del database
    for number in range(5):
        assert at_once(4, lambda _, network=f"network-{number}": signing_stops.watch(network)) == [None] * 4


def test_a_stop_ends_once(stopped: Stop) -> None:
    assert [signing_stops.resume(stopped, {SENDER: 4}) for _ in range(2)] == [True, False]
    assert rows("SELECT next_slot FROM spend_accounts") == [(4,)]


def test_a_stop_notifies_recovery_after_its_commit(database: str, rung: list[str]) -> None:
    del database
    for _ in range(2):
        rung.clear()
        with transaction():
            signing_stops.stop("ethereum", reason="a test")
            assert rung == []
        assert rung == ["resume_signing:ethereum"]


def test_an_unread_departure_notifies_recovery_once_after_its_commit(database: str, rung: list[str]) -> None:
    del database
    for times in (1, 0):
        rung.clear()
        with transaction():
            unread_departures.note("ethereum", "coins", {"0xunread": ""}, height=8, block_hash="0x8")
            assert rung == []
        assert rung.count("seek_departures:ethereum") == times


def test_a_departure_found_since_the_signers_reading_keeps_the_stop(stopped: Stop) -> None:
    with transaction():
        assert unexplained.note(a_departure())
    signing_stops.note_caught_up("ethereum")
    assert not signing_stops.resume(stopped, {SENDER: 4})
    execute(DISMISSED)
    assert signing_stops.resume(stopped, {SENDER: 4})


def test_a_scan_that_must_catch_up_again_keeps_the_stop(stopped: Stop) -> None:
    with transaction():
        assert not signing_stops.stop("ethereum", reason="again")
    assert not signing_stops.resume(stopped.but(is_caught_up=True), {SENDER: 4})


def test_a_stop_restored_with_a_backup_begins_again(stopped: Stop) -> None:
    execute("UPDATE signing_stops SET stopped_at = stopped_at - interval '1 day'")
    watched = signing_stops.watch("ethereum")
    assert watched is not None
    assert (watched.reason, watched.is_caught_up) == (stopped.reason, True)

    execute("UPDATE database_marks SET timeline = '00000000'")
    for _ in range(2):
        watched = signing_stops.watch("ethereum")
        assert watched is not None
        assert (watched.reason, watched.is_caught_up) == (signing_stops.ANOTHER_DATABASE, False)
        assert watched.age_s < HOUR_S
        execute("UPDATE signing_stops SET stopped_at = stopped_at - interval '59 minutes'")
    assert watched.age_s < HOUR_S
    assert signing_stops.read("ethereum").age_s > HOUR_S, "it began again only once"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("clock_s", "chain_s", "is_over"), [(601, 601, True), (599, 999, False), (999, 599, False)]
)  # fmt: skip
def test_a_window_must_have_passed_by_the_gateways_clock_and_the_chains(
    database: str,
    clock_s: int,
    chain_s: int,
    is_over: bool,  # noqa: FBT001
) -> None:
    del database
    with transaction():
        assert signing_stops.stop("ethereum", reason="a test")
    signing_stops.note_caught_up("ethereum", window_s=600)
    assert [each.is_caught_up for each in signing_stops.listing()] == [False], "no block is scanned yet"

    now = value("SELECT app_now()")
    block = ChainBlock(
        network="ethereum", height=1, hash="0x1", parent_height=0, parent_hash="0x0",
        block_time=now + timedelta(seconds=chain_s),
    )  # fmt: skip
    cursors.start(block)
    execute("UPDATE app_clock SET ahead = make_interval(secs => %s)", (clock_s,))
    signing_stops.note_caught_up("ethereum", window_s=600)
    assert [each.is_caught_up for each in signing_stops.listing()] == [is_over]


def test_a_window_of_blocks_ends_by_blocks_though_the_chain_halted(database: str) -> None:
    del database
    now = value("SELECT app_now()")

    def reach(count: int, *, seconds: int) -> list[bool]:
        """Scan a head of this count and time, long after the stop by the clock; return whether the stop is over."""
        execute(
            "UPDATE chain_cursors SET block_count = %s, block_time = %s, moved_at = app_now() + interval '1 hour'",
            (count, now + timedelta(seconds=seconds)),
        )
        signing_stops.note_caught_up("solana", window_s=120, window_blocks=150)
        return [each.is_caught_up for each in signing_stops.listing()]

    cursors.start(
        ChainBlock(
            network="solana", height=1, hash="1", parent_height=0, parent_hash="0", block_time=now, block_count=7
        )
    )
    with transaction():
        assert signing_stops.stop("solana", reason="a test")
    execute("UPDATE app_clock SET ahead = interval '1 day'")
    # Read before the stop, or made before it: bytes signed until then may refer to a later block.
    assert reach(500, seconds=-1) == [False]
    assert reach(600, seconds=3_600) == [False]
    assert reach(750, seconds=3_700) == [False]
    # A database that went back once more lacks what was signed since.
    signing_stops.distrust()
    execute("UPDATE app_clock SET ahead = interval '2 days'")
    assert reach(751, seconds=90_000) == [False]
    assert reach(901, seconds=90_060) == [False]
    assert reach(902, seconds=90_070) == [True]


@pytest.mark.parametrize(
    ("block_age_s", "needs_new_block", "is_over"),
    [(100, False, True), (130, False, False), (100, True, False), (30, True, True)],
)
def test_the_newest_block_of_nodes_that_may_have_gone_back_ends_no_stop(
    database: str,
    block_age_s: int,
    needs_new_block: bool,  # noqa: FBT001
    is_over: bool,  # noqa: FBT001
) -> None:
    del database
    with transaction():
        assert signing_stops.stop("ethereum", reason="a test")
    # Blocks follow the real clock, while the gateway's may be moved.
    execute("UPDATE app_clock SET ahead = interval '1 day'")
    execute("UPDATE signing_stops SET stopped_at = app_now() - interval '60 seconds'")
    signing_stops.note_caught_up("ethereum", age_max_s=120, needs_new_block=needs_new_block)
    assert [each.is_caught_up for each in signing_stops.listing()] == [False], "no block is scanned yet"
    block_time = value("SELECT clock_timestamp()") - timedelta(seconds=block_age_s)
    cursors.start(
        ChainBlock(network="ethereum", height=1, hash="0x1", parent_height=0, parent_hash="0x0", block_time=block_time)
    )
    signing_stops.note_caught_up("ethereum", age_max_s=120, needs_new_block=needs_new_block)
    assert [each.is_caught_up for each in signing_stops.listing()] == [is_over]


def test_a_block_dated_ahead_ends_no_stop_younger_than_its_receipt(database: str) -> None:
    del database
    ahead = value("SELECT clock_timestamp()") + timedelta(hours=1)
    block = ChainBlock(network="ethereum", height=1, hash="0x1", parent_height=0, parent_hash="0x0", block_time=ahead)
    cursors.start(block)
    with transaction():
        assert signing_stops.stop("ethereum", reason="a test")
    signing_stops.note_caught_up("ethereum", age_max_s=120, needs_new_block=True)
    assert [each.is_caught_up for each in signing_stops.listing()] == [False]

    expected, successor = cursors.read("ethereum"), block.but(height=2, hash="0x2", parent_hash="0x1")
    assert expected is not None
    with transaction():
        assert cursors.advance(successor, expected=expected, head=2)
    signing_stops.note_caught_up("ethereum", age_max_s=120, needs_new_block=True)
    assert [each.is_caught_up for each in signing_stops.listing()] == [True]


def test_an_unexplained_departure_is_read_as_noted(database: str) -> None:
    del database
    with transaction():
        assert unexplained.note(a_departure())
    departure = unexplained.find("ethereum", "0xlost")
    assert departure is not None
    assert vars(departure) == vars(departure) | vars(a_departure())
    assert (departure.status, departure.spend_id) == ("unexplained", None)
    assert (departure.settled_by, departure.reason) == ("", "")


def test_unexplained_departures_are_listed_counted_and_locked_until_settled(database: str) -> None:
    del database
    with transaction():
        assert [unexplained.note(a_departure(txid)) for txid in ("0xone", "0xtwo", "0xone")] == [True, True, False]
    assert [row.txid for row in unexplained.listing("ethereum", limit=9)] == ["0xtwo", "0xone"]
    assert unexplained.waiting() == {"ethereum": 2}

    with transaction():
        (first, _) = unexplained.open_ones("ethereum")
        assert unexplained.lock(first.id) == first
        execute(f"{DISMISSED} WHERE id = %s", (first.id,))
        assert unexplained.lock(first.id) is None
    assert unexplained.waiting() == {"ethereum": 1}


def test_a_database_without_counted_looks_has_no_age(database: str) -> None:
    del database
    execute("DELETE FROM database_looks")
    for look in (signing_stops.age, signing_stops.count_look):
        with pytest.raises(LookupError):
            look()

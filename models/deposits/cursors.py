"""Keeps each network's cursor and scanned blocks. A cursor moves by compare-and-swap, in its block's transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

from models.db.base import column, execute, is_true, one, one_as, rows, touched, transaction, value
from models.deposits.rows import ChainBlock, ChainCursor

# Blocks kept for walking back; deeper reorgs than this stop the scan with an alarm instead of guessing.
BLOCKS_KEPT: Final = 512
# Blocks that no second provider has shown yet are kept longer, up to this number: if one provider invented them, the
# scan walks back over them.
BLOCKS_UNREAD_MAX: Final = 20_000
# A catch-up stores no blocks from this depth on, so that a block that is not kept may still be a scanned one.
BLOCKS_SETTLED: Final = 256
# A running scan looks at its chain more often than this.
GAP_S: Final = 60
# After the server's start, a network without a look is doubted for this long, and for as long as no network has had a
# look. Scans of served networks look within seconds of each other; a network that is not served would be doubted for
# ever.
UNSEEN_MAX_S: Final = 3_600
# The networks whose scan has not looked since the database's server started, and had paused before: the next look
# finds that gap.
UNSEEN: Final = (
    "SELECT network FROM chain_cursors WHERE COALESCE(looked_at, moved_at) < LEAST(pg_postmaster_start_time(),"
    f" app_now() - interval '{GAP_S} seconds') AND pg_postmaster_start_time() <= now()"
    f" AND (pg_postmaster_start_time() >= now() - interval '{UNSEEN_MAX_S} seconds'"
    "   OR NOT EXISTS (SELECT FROM chain_cursors o WHERE o.looked_at >= pg_postmaster_start_time()))"
)
# Limits how often a look and a reached head are recorded: each is a commit, and a starting signer waits for the head.
LOOK_EVERY_S: Final = 10
HEAD_EVERY_S: Final = 1
# The moment that the scan of a cursor c has passed. A miner may date a block two hours ahead: payments that were made
# after it was read can still come with the next one.
PASSED: Final = "LEAST(c.block_time, c.moved_at)"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last block whose deposits are recorded."""

    height: int
    hash: str
    block_time: datetime
    # The number of blocks up to it, where windows are counted in blocks.
    block_count: int | None = None


def window_is_over(row: str, at: str = "c") -> str:
    """Return the condition that the cursor `c` has passed the window of a row, with its expires_ columns.

    at: the block that has to be past it, if not the cursor's own.
    """
    passed = f"LEAST({at}.block_time, c.moved_at)"
    return (
        f"({at}.height > {row}.expires_height OR {passed} > {row}.expires_at OR {at}.block_count > {row}.expires_block)"
    )


def read(network: str) -> Cursor | None:
    """Return a network's cursor, or None before its first scan."""
    sql = "SELECT height, hash, block_time, block_count FROM chain_cursors WHERE network = %s"
    return one_as(Cursor, sql, (network,))


@dataclass(frozen=True, slots=True)
class Pace:
    """A block some way below the cursor, and the database's time, from which the rate of blocks is measured."""

    height: int
    block_time: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """A cursor with everything else that a step of the scan reads before it asks for blocks."""

    cursor: Cursor
    # The height at which providers are known to have different blocks; None if there is none.
    split_height: int | None = None
    # None if it was not read, or no block is kept.
    pace: Pace | None = None


def position(network: str, *, pace_blocks: int) -> Position | None:
    """Return a network's position, or None before its first scan. pace_blocks: how far below the cursor Pace may be."""
    row = one(
        "SELECT c.height, c.hash, c.block_time, c.block_count, c.split_height, app_now(), b.height, b.block_time"
        " FROM chain_cursors c"
        " LEFT JOIN LATERAL (SELECT height, block_time FROM chain_blocks WHERE network = c.network"
        "   AND height >= c.height - %s ORDER BY height LIMIT 1) b ON true WHERE c.network = %s",
        (pace_blocks, network),
    )
    if row is None:
        return None
    height, block_hash, block_time, block_count, split_height, now, pace_height, pace_time = row
    pace = None if pace_height is None else Pace(pace_height, pace_time, now)
    return Position(Cursor(height, block_hash, block_time, block_count), split_height, pace)


def has_passed(network: str, moment: datetime) -> bool:
    """Return True if a network's scan has passed a moment, and the clock has reached it."""
    return is_true(
        f"SELECT {PASSED} > %s AND app_now() >= %s FROM chain_cursors c WHERE c.network = %s", (moment, moment, network)
    )


def begun(networks: Collection[str]) -> set[str]:
    """Return the networks among these whose scan has begun."""
    return set(column("SELECT network FROM chain_cursors WHERE network = ANY(%s)", (list(networks),)))


def start(block: ChainBlock) -> None:
    """Begin a network's scan at a block; a cursor that exists stays, and so do its kept blocks."""
    with transaction():
        if ChainCursor(
            network=block.network,
            height=block.height,
            hash=block.hash,
            block_time=block.block_time,
            block_count=block.block_count,
            head_height=block.height,
            started_height=block.height,
        ).write("ON CONFLICT DO NOTHING"):
            _keep(block)


def advance(block: ChainBlock, *, expected: Cursor, head: int) -> bool:
    """Move the cursor to the next block; False if another process moved it.

    Call inside the transaction of that block's deposits.
    """
    moved = _move(block, expected, head, peak=None)
    if moved:
        _keep(block)
        execute(
            "DELETE FROM chain_blocks b USING chain_cursors c WHERE c.network = b.network AND b.network = %s"
            " AND b.height < LEAST(%s, GREATEST(COALESCE(c.reread_height, %s), %s))",
            (block.network, block.height - BLOCKS_KEPT, block.height, block.height - BLOCKS_UNREAD_MAX),
        )
    return moved


def _move(block: ChainBlock, expected: Cursor, head: int | None, *, peak: int | None) -> bool:
    return touched(
        "UPDATE chain_cursors SET height = %s, hash = %s, block_time = %s, block_count = %s, moved_at = app_now(),"
        " peak_height = LEAST(GREATEST(peak_height, height, %s), %s),"
        " head_height = COALESCE(%s, head_height) WHERE network = %s AND height = %s AND hash = %s",
        (
            block.height, block.hash, block.block_time, block.block_count, block.height, peak, head, block.network,
            expected.height, expected.hash,
        ),
    )  # fmt: skip


def _keep(block: ChainBlock) -> None:
    block.write(
        "ON CONFLICT (network, height) DO UPDATE SET hash = EXCLUDED.hash, parent_height = EXCLUDED.parent_height,"
        " parent_hash = EXCLUDED.parent_hash, block_time = EXCLUDED.block_time, block_count = EXCLUDED.block_count,"
        " read_by = EXCLUDED.read_by"
    )


def kept_blocks(network: str) -> list[tuple[int, str]]:
    """Return (height, hash) of the blocks kept, highest first."""
    return rows("SELECT height, hash FROM chain_blocks WHERE network = %s ORDER BY height DESC", (network,))


def kept_block(network: str, height: int) -> ChainBlock | None:
    """Return a scanned block, None if it is no longer kept or was left out."""
    return ChainBlock.first("network = %s AND height = %s", (network, height))


def retreat(network: str, *, expected: Cursor, to_height: int, peak: int | None) -> bool:
    """Move the cursor back to a kept block after its successors left the chain; call inside a transaction.

    Afterwards, and before the scan goes on, reversals.reverse_orphans reverses the deposits above it. The chain's head
    counts as not reached. peak: if two providers report the reorg, or the only one does, the highest block from which
    the remaining credits can have been counted; None if one of several reports it.
    """
    moved = touched(
        "UPDATE chain_cursors c SET height = b.height, hash = b.hash, block_time = b.block_time,"
        " block_count = b.block_count, moved_at = app_now(), head_reached_at = NULL,"
        " peak_height = LEAST(GREATEST(c.peak_height, c.height), %s),"
        " reread_height = LEAST(c.reread_height, b.height)"
        " FROM chain_blocks b WHERE b.network = c.network AND b.height = %s"
        " AND c.network = %s AND c.height = %s AND c.hash = %s",
        (peak, to_height, network, expected.height, expected.hash),
    )
    if moved:
        execute("DELETE FROM chain_blocks WHERE network = %s AND height > %s", (network, to_height))
    return moved


def restart(block: ChainBlock, *, expected: Cursor, peak: int | None) -> bool:
    """Restart the scan at another block, at or below the height where it began, because the chain was replaced there.

    No deposit is lost: the scan looks for none in its first block or before, and this is the first from now on. Call
    inside a transaction. peak: as with retreat().
    """
    moved = _move(block, expected, None, peak=peak)
    if moved:
        execute(
            "UPDATE chain_cursors SET head_reached_at = NULL, reread_height = LEAST(reread_height, height),"
            " started_height = LEAST(started_height, height)"
            " WHERE network = %s",
            (block.network,),
        )
        execute("DELETE FROM chain_blocks WHERE network = %s", (block.network,))
        _keep(block)
    return moved


def peak_height(network: str) -> int:
    """Return the highest block ever scanned, unless two providers deny it; 0 before the first."""
    sql = "SELECT GREATEST(peak_height, height) FROM chain_cursors WHERE network = %s"
    return cast("int", value(sql, (network,)) or 0)


def pace(network: str, *, above: int) -> Pace | None:
    """Return the lowest kept block from a height on."""
    return one_as(
        Pace,
        "SELECT height, block_time, app_now() AS now FROM chain_blocks WHERE network = %s AND height >= %s"
        " ORDER BY height LIMIT 1",
        (network, above),
    )


def note_split(network: str, height: int | None) -> None:
    """Record the height at which providers have different blocks; None if they agree."""
    execute("UPDATE chain_cursors SET split_height = %s WHERE network = %s", (height, network))


def started_height(network: str) -> int | None:
    """Return the height at which the scan began; None if unknown."""
    return cast("int | None", value("SELECT started_height FROM chain_cursors WHERE network = %s", (network,)))


def kept_from(network: str) -> int | None:
    """Return the height of the lowest kept block."""
    return cast("int | None", value("SELECT min(height) FROM chain_blocks WHERE network = %s", (network,)))


def kept_hash(network: str, height: int) -> str | None:
    """Return the hash of a scanned block, None if it is no longer kept or was left out."""
    sql = "SELECT hash FROM chain_blocks WHERE network = %s AND height = %s"
    return cast("str | None", value(sql, (network, height)))


def read_by(network: str, height: int) -> str:
    """Return the mark of the provider that showed a scanned block; '' if unknown."""
    sql = "SELECT read_by FROM chain_blocks WHERE network = %s AND height = %s"
    return cast("str", value(sql, (network, height)) or "")


def kept_at_or_below(network: str, height: int) -> tuple[int, str] | None:
    """Return (height, hash) of the newest kept block up to a height."""
    sql = "SELECT height, hash FROM chain_blocks WHERE network = %s AND height <= %s ORDER BY height DESC LIMIT 1"
    return cast("tuple[int, str] | None", one(sql, (network, height)))


def kept_at_or_above(network: str, height: int) -> tuple[int, str] | None:
    """Return (height, hash) of the oldest kept block from a height on; None if the scan has not reached it."""
    sql = "SELECT height, hash FROM chain_blocks WHERE network = %s AND height >= %s ORDER BY height LIMIT 1"
    return cast("tuple[int, str] | None", one(sql, (network, height)))


def is_hole(network: str, height: int) -> bool:
    """Return True if the scanned chain skipped a height: the next kept block's parent is below it."""
    return is_true(
        "SELECT 1 FROM (SELECT height, parent_height FROM chain_blocks"
        "   WHERE network = %s AND height >= %s ORDER BY height LIMIT 1) above"
        " WHERE above.parent_height < %s AND above.height > %s",
        (network, height, height, height),
    )


def is_scanned(network: str, *, height: int, block_hash: str) -> bool:
    """Return True if the scanned chain has a block; lock the cursor until the transaction ends.

    A block that is too old to be kept counts, since a reorg that deep stops the scan. It does not count at a height
    that the scanned chain skips, or while the scan is halted: the reason may be that such blocks are another chain's.
    """
    sql = "SELECT height, halted_reason <> '' FROM chain_cursors WHERE network = %s FOR UPDATE"
    row = one(sql, (network,))
    return row is not None and _is_below(network, height, block_hash, reached=row[0], is_halted=row[1])


def stands_on(network: str, *, height: int, block_hash: str) -> bool:
    """Return True if the scanned chain has a block now, halted or not; locks nothing."""
    reached: int | None = value("SELECT height FROM chain_cursors WHERE network = %s", (network,))
    return reached is not None and _is_below(network, height, block_hash, reached=reached, is_halted=False)


def _is_below(network: str, height: int, block_hash: str, *, reached: int, is_halted: bool) -> bool:
    """Return True if a block is on the chain of a cursor that has reached a height."""
    if height > reached:
        return False
    kept = kept_hash(network, height)
    if kept is not None or is_halted:
        return kept == block_hash
    return height <= reached - BLOCKS_SETTLED and not is_hole(network, height)


def halt(network: str, reason: str) -> bool:
    """Record why a scan is halted; return True if the reason is new."""
    return touched(
        "UPDATE chain_cursors SET halted_reason = %s, halted_at = app_now() WHERE network = %s AND halted_reason <> %s",
        (reason, network, reason),
    )


def resume(network: str) -> None:
    """End a scan's halt."""
    execute(
        "UPDATE chain_cursors SET halted_reason = '', halted_at = NULL WHERE network = %s AND halted_reason <> ''",
        (network,),
    )


@dataclass(frozen=True, slots=True)
class Look:
    """A scan's look at its chain."""

    began_at: datetime
    # True if the rows may have gone back since this process's previous look.
    is_after_gap: bool


def look(network: str, *, seconds_ago: float) -> Look | None:
    """Record that a scan looks at its chain now, before it asks its providers; None before its first scan.

    seconds_ago: since this process's previous look, or its start. If the stored look is more than a minute older than
    that, or from before the start of the database's server, the rows may have gone back. A look stored in the future
    shows that the clock was set back, and counts as a gap too.
    """
    row = one(
        "SELECT app_now(), at > app_now() + %(gap)s"
        "   OR at < LEAST(app_now() - %(gap)s, GREATEST(app_now() - %(own)s, pg_postmaster_start_time())),"
        " looked_at IS NULL OR looked_at NOT BETWEEN app_now() - %(often)s AND app_now()"
        " FROM (SELECT looked_at, COALESCE(looked_at, moved_at) AS at FROM chain_cursors"
        "   WHERE network = %(network)s) c",
        {
            "network": network,
            "gap": timedelta(seconds=GAP_S),
            "own": timedelta(seconds=seconds_ago + GAP_S),
            "often": timedelta(seconds=LOOK_EVERY_S),
        },
    )
    if row is None:
        return None
    began_at, is_after_gap, is_due = row
    if is_due:
        execute("UPDATE chain_cursors SET looked_at = app_now() WHERE network = %s", (network,))
    return Look(began_at, is_after_gap)


def note_looks() -> None:
    """Record a look of every scan now, so that none counts as paused."""
    execute("UPDATE chain_cursors SET looked_at = app_now()")


def reach_head(network: str, *, at: Cursor, asked_at: datetime, age_max_s: int) -> None:
    """Record that the scan has read everything up to the chain's head of a moment.

    at: the cursor that was compared with the head. Nothing is recorded if another process has moved it since, while the
    scan is halted, or if the newest block is older than age_max_s: then the chain has stopped, or it or its nodes went
    back. Blocks follow the real clock.
    """
    execute(
        "UPDATE chain_cursors SET head_reached_at = %(asked_at)s WHERE network = %(network)s AND halted_reason = ''"
        " AND height = %(height)s AND hash = %(hash)s AND block_time > clock_timestamp() - %(age_max)s"
        " AND (head_reached_at IS NULL OR head_reached_at NOT BETWEEN"
        "   GREATEST(%(asked_at)s - %(often)s, pg_postmaster_start_time()) AND %(asked_at)s)",
        {
            "network": network, "height": at.height, "hash": at.hash, "asked_at": asked_at,
            "age_max": timedelta(seconds=age_max_s), "often": timedelta(seconds=HEAD_EVERY_S),
        },
    )  # fmt: skip


def seen_final(network: str, height: int | None) -> None:
    """Record the chain's final height and the time of the change. It never goes back, whatever a node reports.

    It is capped at the scanned height: otherwise a height invented by a node would be believed for ever.
    """
    execute(
        "UPDATE chain_cursors SET final_height = LEAST(%s, height), final_moved_at = app_now()"
        " WHERE network = %s AND COALESCE(final_height, -1) < LEAST(%s::bigint, height) AND %s::bigint IS NOT NULL",
        (height, network, height, height),
    )


def reread_height(network: str) -> int | None:
    """Return the height that the second reading has reached."""
    return cast("int | None", value("SELECT reread_height FROM chain_cursors WHERE network = %s", (network,)))


def reread_to(network: str, height: int, *, block_hash: str) -> bool:
    """Record that the second reading has reached the next block; False if the scan has left that block meanwhile.

    block_hash: of the block that was read; '' if the chain skips the height.
    """
    return touched(
        "UPDATE chain_cursors c SET reread_height = %s WHERE network = %s AND height >= %s"
        " AND (reread_height IS NULL OR reread_height = %s) AND NOT EXISTS (SELECT 1 FROM chain_blocks b"
        "   WHERE b.network = c.network AND b.height = %s AND b.hash <> %s)",
        (height, network, height, height - 1, height, block_hash),
    )


def end_rereading(network: str) -> None:
    """Clear the second reading's height, because none is made; blocks are no longer kept for it."""
    execute(
        "UPDATE chain_cursors SET reread_height = NULL WHERE network = %s AND reread_height IS NOT NULL", (network,)
    )


def give_up_rereading(network: str, *, first: int, last: int) -> bool:
    """Count blocks that could not be read a second time, and go on after them; False if that was done already."""
    return touched(
        "UPDATE chain_cursors SET reread_height = %s, unread_blocks = unread_blocks + %s"
        " WHERE network = %s AND reread_height = %s",
        (last, last - first + 1, network, first - 1),
    )


def seen_head(network: str, head: int) -> None:
    """Record the provider's head, for the lag that /metrics shows."""
    execute("UPDATE chain_cursors SET head_height = %s WHERE network = %s AND head_height <> %s", (head, network, head))

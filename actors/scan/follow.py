"""Scans the networks: records each block's deposits, then settles their owners. Notified by the scheduler.

A cursor moves in the transaction of its block's deposits. If a block's parent is not the cursor's block, the scan walks
back. It passes over heights that a chain skips, and waits for one that does not exist yet.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.doorbells import ring
from actors.queue.isolated import isolated
from actors.scan import departures, observers, reorgs
from actors.scan.reading import NOTHING, Matching, Reading
from actors.scan.record import SETTLE, settle_owners
from chains.base import SKIPPED, WITNESSES_MIN, Block, ContradictionError, ProviderError
from chains.family import Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.db.base import repeat_on_deadlock, transaction
from models.deposits import crediting, cursors, provider_looks
from models.deposits import rows as deposits
from models.deposits.cursors import Cursor, Pace, Position
from models.spends import signing_stops
from models.treasury import charges, topups

log = structlog.get_logger()

# A step ends after this many blocks, so that settlement, release and the next network get their turn.
BLOCKS_PER_STEP: Final = 50
SETTLED_PER_STEP: Final = 500
RELEASED_PER_STEP: Final = 500
# If the newest block is older than both, the nodes went back together with the database, or the chain is at rest.
HEAD_AGE_MAX_S: Final = 120
HEAD_AGE_MAX_BLOCKS: Final = 24
# Over the newest PACE_OVER_BLOCKS, blocks may come PACE_FACTOR times as fast as the network makes them, plus
# PACE_SLACK_BLOCKS; and a chain's clock may be ahead of our clock by CLOCK_SKEW.
PACE_OVER_BLOCKS: Final = 64
PACE_FACTOR: Final = 4
PACE_SLACK_BLOCKS: Final = 24
CLOCK_SKEW: Final = timedelta(seconds=60)


# If only one provider has the newest block, the first scan begins this far below it: the others may lag.
FIRST_BEHIND: Final = (0, 1, 4, 16, 64)


# By network: the providers and those that answer, as last recorded, and when they are recorded again at the latest.
_noted_providers: Final[dict[str, tuple[tuple[int, int], float]]] = {}


class Tip(Enum):
    """The outcome of comparing the newest scanned block with the chain's."""

    OURS = auto()
    # The scan has gone back to where the chains part.
    REPLACED = auto()
    # A node lacks it, or providers disagree: the scan may not have read every block of the chain.
    UNKNOWN = auto()


@network_tick("poll")
def poll_network(ctx: Context, network: Network, chain: Reader) -> bool:
    """Scan a network's new blocks and settle their deposits; return whether there are more."""
    try:
        return _scan(ctx, network, chain)
    finally:
        try:
            # Deposits of blocks scanned before are settled even if the scan fails.
            _settle(ctx, network, chain)
        finally:
            _note_providers(network, chain)


def _note_providers(network: Network, chain: Reader) -> None:
    """Record how many providers answer, if that changed or was recorded some time ago."""
    counts = chain.providers, chain.answering
    noted, due_at = _noted_providers.get(network.code, (None, 0.0))
    if counts != noted or time.monotonic() >= due_at:
        provider_looks.note(network.code, providers=counts[0], answering=counts[1])
        _noted_providers[network.code] = counts, time.monotonic() + provider_looks.EVERY_S


def _scan(ctx: Context, network: Network, chain: Reader) -> bool:
    """Scan up to BLOCKS_PER_STEP blocks; return whether there are more. Notifies recovery if the network is stopped."""
    # Read before the head is asked for: a transaction signed before the stop is in a block up to the head, or in none
    # yet. Where claims are windows, one that is in none may still enter a block: only time ends that.
    looked_at = signing_stops.look(network.code)
    is_stopped = signing_stops.watch(network.code) is not None
    try:
        return _scan_to_head(ctx, network, chain, looked_at=looked_at, is_stopped=is_stopped)
    finally:
        if is_stopped:
            # Afterwards: recovery goes by the cursor, and by whether the scan has caught up.
            ring("seek_departures", network.code)
            ring("resume_signing", network.code)


def _scan_to_head(
    ctx: Context, network: Network, chain: Reader, *, looked_at: datetime | None, is_stopped: bool
) -> bool:
    head = chain.head()
    at = cursors.position(network.code, pace_blocks=PACE_OVER_BLOCKS) or _first_position(network, chain, head)
    if at is None:
        return False
    cursors.seen_head(network.code, head)
    # A step that died during a reorg may have left orphans.
    reorgs.reverse_orphans(ctx, network)
    if chain.providers > 1 and at.split_height is not None and reorgs.is_split(network, chain, at.split_height):
        return False
    final = chain.final_height() if at.cursor.height < head else None
    try:
        return _scan_on(ctx, network, chain, at, head, looked_at=looked_at, is_stopped=is_stopped)
    finally:
        # The final height counts up to the cursor, and is noted before any deposit is released.
        cursors.seen_final(network.code, final)


def _scan_on(
    ctx: Context,
    network: Network,
    chain: Reader,
    at: Position,
    head: int,
    *,
    looked_at: datetime | None,
    is_stopped: bool,
) -> bool:
    first, ours = at.cursor.height, Matching(network)
    while at.cursor.height - first < BLOCKS_PER_STEP:
        if at.cursor.height >= head:
            tip = _check_tip(ctx, network, chain, at.cursor, head)
            if tip is Tip.OURS:
                cursors.resume(network.code)
                _note_head(network, at.cursor, looked_at, is_stopped=is_stopped)
            return tip is Tip.REPLACED
        moved = _scan_next(ctx, network, chain, at, head, ours, whole=is_stopped)
        if moved is not None:
            at = Position(moved)
        elif head - at.cursor.height <= reorgs.HOLE_MAX and _is_hole(chain, at.cursor.height, head):
            # The chain ends with heights that it skipped: the cursor is at its end.
            head = at.cursor.height
        else:
            return False
    return at.cursor.height < head


def _note_head(network: Network, at: Cursor, looked_at: datetime | None, *, is_stopped: bool) -> None:
    """Note that the scan has read the whole chain, unless the chain's newest block is too old.

    Where blocks may be hours apart, nodes may have gone back by hours with the database and still look healthy: there,
    signing stays stopped until a block was made after the stop.
    """
    traits, age_max_s = traits_of(network), _head_age_max_s(network)
    if is_stopped:
        signing_stops.note_caught_up(
            network.code,
            window_s=traits.window_s,
            window_blocks=traits.window_blocks,
            age_max_s=age_max_s,
            needs_new_block=traits.resumes_on_new_block,
        )
    if looked_at is not None:
        cursors.reach_head(network.code, at=at, asked_at=looked_at, age_max_s=age_max_s)


def _head_age_max_s(network: Network) -> int:
    """Return the highest age in seconds at which a block is accepted as the chain's newest."""
    return max(HEAD_AGE_MAX_S, HEAD_AGE_MAX_BLOCKS * network.block_time_ms // 1000)


def _is_hole(chain: Reader, low: int, high: int) -> bool:
    """Return whether the chain skipped every height above `low` up to `high`."""
    return all(chain.block(height) is SKIPPED for height in range(high, low, -1))


def _first_position(network: Network, chain: Reader, head: int) -> Position | None:
    """Begin at the head, or some blocks below it: no address was given out before.

    If there are several providers, two have to have the block. Raises ProviderError if only one has it.
    """
    block = _first_block(chain, head)
    if block is None:
        return None
    reorgs.check_count(network, chain, block)
    cursors.start(reorgs.row(network, block))
    return cursors.position(network.code, pace_blocks=PACE_OVER_BLOCKS)


def _first_block(chain: Reader, head: int) -> Block | None:
    for behind in FIRST_BEHIND:
        block = reorgs.at_or_below(chain, max(head - behind, 0))
        if block is None or chain.providers == 1:
            return block
        if chain.agreement(block.height, block.hash).same >= WITNESSES_MIN:
            return block
    raise ProviderError(f"one provider alone has the blocks up to {head}; the scan begins at one that two have")


def _check_tip(ctx: Context, network: Network, chain: Reader, cursor: Cursor, head: int) -> Tip:
    """Compare the newest scanned block with the chain's, and walk back if the chain replaced it.

    On a shorter chain, the kept block at its head is compared. A lower head is no reorg while the blocks up to it are
    the scanned ones: its node lags.
    """
    kept = (cursor.height, cursor.hash) if head >= cursor.height else cursors.kept_at_or_below(network.code, head)
    block = None if kept is None else chain.block(kept[0])
    if kept is None and head < cursor.height - cursors.BLOCKS_KEPT:
        _halt_far_ahead(network, cursor, head)
    if kept is None or block is None:
        return Tip.UNKNOWN
    if reorgs.is_same(block, kept[1]):
        return Tip.OURS
    return Tip.UNKNOWN if reorgs.walk_back(ctx, network, chain, cursor, head) is None else Tip.REPLACED


def _halt_far_ahead(network: Network, cursor: Cursor, head: int) -> None:
    """Halt the scan, whose kept blocks are all above the chain's head.

    A provider invented those blocks, or the nodes lost the chain.
    """
    if cursors.halt(network.code, "the chain ends below the kept blocks"):
        command = f"sluice scan rewind {network.code} --to HEIGHT --force"
        log.error("scan.ahead_of_chain", network=network.code, height=cursor.height, head=head, command=command)


def _scan_next(
    ctx: Context, network: Network, chain: Reader, begun: Position, head: int, ours: Matching, *, whole: bool
) -> Cursor | None:
    """Record the next blocks' deposits and move the cursor; None if the scan has to wait."""
    at = cursor = begun.cursor
    scans = chain.scan(cursor.height, head, ours, whole=whole, upon=cursor.hash)
    left = departures.left_in(ctx, network, chain, scans)
    pace = None
    if chain.providers > 1:
        pace = begun.pace or cursors.pace(network.code, above=cursor.height - PACE_OVER_BLOCKS)
    for scan in scans:
        if not _follows(scan.block, at, head, whole=whole):
            back = reorgs.walk_back(ctx, network, chain, at, head)
            if back is None and chain.providers > 1:
                # A provider that shows our block and a next one on another parent rests if the others disagree.
                chain.agreement(scan.block.height, scan.block.hash)
            return back
        _check_count(scan.block, at)
        if pace is not None:
            _check_pace(network, chain, scan.block, pace)
        reading = Reading(
            ctx=ctx, network=network, chain=chain, scan=scan, ours=ours, left=left.get(scan.block.hash, NOTHING)
        )
        if not repeat_on_deadlock(_record, reading, at, head):
            return None
        settle_owners(ctx, ours.of(scan.transfers))
        at = Cursor(scan.block.height, scan.block.hash, scan.block.time, scan.block.count)
    if at is cursor:
        return None
    cursors.resume(network.code)
    return at


def _follows(block: Block, at: Cursor, head: int, *, whole: bool) -> bool:
    """Return whether a block continues the cursor's block; if not, the chain has changed.

    True also if blocks between them were left out, which is allowed only where no block may be replaced; elsewhere
    raises ProviderError.
    """
    if block.parent_height > at.height:
        if whole or block.height > head - cursors.BLOCKS_SETTLED:
            raise ProviderError(f"block {block.height} came without those between it and block {at.height}")
        return True
    return (block.parent_height, block.parent_hash) == (at.height, at.hash)


def _check_count(block: Block, at: Cursor) -> None:
    """Refuse a block whose count does not continue the cursor's, since windows end by it. Raises ContradictionError."""
    if at.block_count is None:
        return
    added = block.height - at.height if block.parent_height > at.height else 1
    if block.count is None or not 1 <= block.count - at.block_count <= added:
        raise ContradictionError(f"block {block.height} is number {block.count}, after number {at.block_count}")


def _check_pace(network: Network, chain: Reader, block: Block, since: Pace) -> None:
    """Refuse a block that comes much faster than its network makes them, unless two providers have it.

    A provider that invents blocks could otherwise lead the scan further from the chain than it can walk back. A block
    time in the future does not count. Raises ChainError.
    """
    now = max(since.now, datetime.now(UTC))
    passed = min(block.time, now + CLOCK_SKEW) - since.block_time
    fair = PACE_SLACK_BLOCKS + PACE_FACTOR * passed / timedelta(milliseconds=network.block_time_ms)
    if block.height - since.height <= fair:
        return
    agreement = chain.agreement(block.height, block.hash)
    if agreement.same < WITNESSES_MIN:
        # A provider that lacks the block may have it soon. If two differ, neither rests, so an operator has to act.
        reorgs.is_tied(network, block.height, agreement)
        raise ProviderError(f"block {block.height} comes too soon, and one provider alone has it")


def _record(reading: Reading, cursor: Cursor, head: int) -> bool:
    scan = reading.scan
    with transaction():
        row = reorgs.row(reading.network, scan.block, read_by=scan.read_by)
        if not cursors.advance(row, expected=cursor, head=head):
            return False
        observers.note(reading)
    return True


def _settle(ctx: Context, network: Network, chain: Reader) -> None:
    for kind in SETTLE:
        due = deposits.owners_due(network.code, kind=kind, confirmations=network.confirmations, limit=SETTLED_PER_STEP)
        settle_owners(ctx, ((kind, owner_id) for owner_id in due))
    crediting.release_matured(network, limit=RELEASED_PER_STEP, run=isolated)
    # With a single provider, a second reading would only repeat its own answer.
    is_reread = ctx.settings.rescan_s > 0 and chain.providers > 1
    topups.book_matured(network, limit=RELEASED_PER_STEP, after_rereading=is_reread)
    if traits_of(network).has_charges:
        repeat_on_deadlock(
            charges.book_matured, ctx.catalogue, network, limit=RELEASED_PER_STEP, after_rereading=is_reread
        )

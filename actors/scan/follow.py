"""Scans the networks: block after block into deposits, then settles what they touched. Rung by the scheduler.

A cursor moves in the transaction of its block's deposits; a block whose parent is not the cursor's walks back. Heights
that a chain skips are gone over; one that is not there yet is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, cast

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.isolated import isolated
from actors.scan import departures, missing, outflow
from actors.scan.intake import SETTLE, Matching, settle_owners, take_transfer
from actors.scan.outflow import NOTHING, Left
from chains.base import SKIPPED, WITNESSES_MIN, Block, BlockScan, ProviderError, Skipped
from chains.family import CounterReader, DepartureReader, Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.db.base import repeat_on_deadlock, transaction
from models.deposits import crediting, cursors
from models.deposits import rows as deposits
from models.deposits.cursors import Cursor
from models.deposits.rows import ChainBlock
from models.outcomes import reversals
from models.spends import signing
from models.spends import unknown as unknown_spends
from models.treasury import topups

log = structlog.get_logger()

# A step ends after this many blocks, so that settlement, release and the next network get their turn.
BLOCKS_PER_STEP: Final = 50
SETTLED_PER_STEP: Final = 500
RELEASED_PER_STEP: Final = 500
# So many heights in a row that a chain skips are gone over in search of a block; with more, the next step looks again.
HOLE_MAX: Final = 64
# A newest block that is older, by both, is one of nodes that went back with everything else, or of a chain at rest.
HEAD_AGE_MAX_S: Final = 120
HEAD_AGE_MAX_BLOCKS: Final = 24


@network_tick("poll")
def poll_network(ctx: Context, network: Network, chain: Reader) -> bool:
    """Scan a network's new blocks and settle what they bring; return whether there are more."""
    try:
        more = _scan(ctx, network, chain)
        if not more:
            _seek_missing(ctx, network, chain)
    except ProviderError:
        # What was scanned before is settled, whatever becomes of the scan.
        _settle(ctx, network, chain)
        raise
    _settle(ctx, network, chain)
    return more


def _seek_missing(ctx: Context, network: Network, chain: Reader) -> None:
    if traits_of(network).claim == "counter":
        missing.seek(ctx, network, cast("CounterReader", chain))
    else:
        departures.read_strangers(ctx, network, cast("DepartureReader", chain))


def _scan(ctx: Context, network: Network, chain: Reader) -> bool:
    """Scan up to BLOCKS_PER_STEP blocks; return whether there are more."""
    # Seen before the head is asked for: whatever was signed before the stop is in a block up to there, or in none yet.
    # In none it may come for a while, where what is signed lives in a window: nothing but time ends that.
    looked_at = signing.look(network.code)
    is_stopped = signing.watch(network.code) is not None
    head = chain.head()
    cursor = cursors.read(network.code) or _first_cursor(network, chain, head)
    if cursor is None:
        return False
    cursors.seen_head(network.code, head)
    # A step that died in the middle of a reorg left some.
    _reverse_orphans(ctx, network)
    final = chain.final_height() if cursor.height < head else None
    try:
        return _scan_on(ctx, network, chain, cursor, head, looked_at=looked_at, is_stopped=is_stopped)
    finally:
        # It counts as far as the scan has come, and is noted before anything is released.
        cursors.seen_final(network.code, final)


def _scan_on(
    ctx: Context,
    network: Network,
    chain: Reader,
    cursor: Cursor,
    head: int,
    *,
    looked_at: datetime | None,
    is_stopped: bool,
) -> bool:
    first, ours = cursor.height, Matching(network)
    while cursor.height - first < BLOCKS_PER_STEP:
        if cursor.height >= head:
            more = _check_tip(ctx, network, chain, cursor, head)
            if not more:
                _note_head(network, looked_at, is_stopped=is_stopped)
            return more
        moved = _scan_next(ctx, network, chain, cursor, head, ours, whole=is_stopped)
        if moved is not None:
            cursor = moved
        elif head - cursor.height <= HOLE_MAX and _is_hole(chain, cursor.height, head):
            # The chain ends with heights that it skipped: the cursor stands at its end.
            head = cursor.height
        else:
            return False
    return cursor.height < head


def _note_head(network: Network, looked_at: datetime | None, *, is_stopped: bool) -> None:
    """Note that all is read that the chain has, unless its newest block is too old for that.

    Blocks of bitcoin are hours apart at times, so that its nodes may have gone back by hours with the database and look
    well: where coins are claimed a stop lasts until a block was made after it.
    """
    traits, age_max_s = traits_of(network), _head_age_max_s(network)
    if is_stopped:
        signing.note_caught_up(
            network.code, window_s=traits.window_s, age_max_s=age_max_s, needs_new_block=traits.claim == "coins"
        )
    if looked_at is not None:
        cursors.reach_head(network.code, asked_at=looked_at, age_max_s=age_max_s)


def _head_age_max_s(network: Network) -> int:
    """Return how old a chain's newest block may be for its nodes to be believed that it is the newest."""
    return max(HEAD_AGE_MAX_S, HEAD_AGE_MAX_BLOCKS * network.block_time_ms // 1000)


def _is_hole(chain: Reader, low: int, high: int) -> bool:
    """Return whether the chain skipped every height above `low` up to `high`."""
    return all(chain.block(height) is SKIPPED for height in range(high, low, -1))


def _at_or_below(chain: Reader, height: int) -> Block | None:
    """Return the newest block up to a height; None if the chain has not come there, or skips too many heights."""
    for at in range(height, max(height - HOLE_MAX, -1), -1):
        found = chain.block(at)
        if found is not SKIPPED:
            return found if isinstance(found, Block) else None
    return None


def _first_cursor(network: Network, chain: Reader, head: int) -> Cursor | None:
    """Begin at the head: no address was given out before."""
    block = _at_or_below(chain, head)
    if block is None:
        return None
    cursors.start(_row(network, block))
    return cursors.read(network.code)


def _row(network: Network, block: Block, *, read_by: str = "") -> ChainBlock:
    return ChainBlock(
        network=network.code,
        height=block.height,
        hash=block.hash,
        parent_height=block.parent_height,
        parent_hash=block.parent_hash,
        block_time=block.time,
        read_by=read_by,
    )


def _check_tip(ctx: Context, network: Network, chain: Reader, cursor: Cursor, head: int) -> bool:
    """Notice a tip that was replaced by another of the same height, or blocks below it on a shorter chain.

    A head that went back is no reorg while the blocks up to it are the scanned ones: its node lags.
    """
    kept = (cursor.height, cursor.hash) if head >= cursor.height else cursors.kept_at_or_below(network.code, head)
    block = None if kept is None else chain.block(kept[0])
    if kept is None or block is None or _is_same(block, kept[1]):
        return False
    return _walk_back(ctx, network, chain, cursor) is not None


def _scan_next(
    ctx: Context, network: Network, chain: Reader, cursor: Cursor, head: int, ours: Matching, *, whole: bool
) -> Cursor | None:
    """Record the next blocks' deposits and move the cursor; None when there is nothing to go on with."""
    at = cursor
    scans = chain.scan(cursor.height, head, ours, whole=whole)
    left = departures.left_in(ctx, network, chain, scans)
    for scan in scans:
        if not _follows(scan.block, at, head, whole=whole):
            return _walk_back(ctx, network, chain, at)
        if not repeat_on_deadlock(_record, ctx, network, chain, at, scan, ours, head, left):
            return None
        settle_owners(ctx, ours.of(scan.transfers))
        at = Cursor(scan.block.height, scan.block.hash, scan.block.time)
    if at is cursor:
        return None
    cursors.resume(network.code)
    return at


def _follows(block: Block, at: Cursor, head: int, *, whole: bool) -> bool:
    """Return whether a block stands upon the cursor's, as far as that shows; where it does not, the chain has changed.

    Blocks between them are left out only where none may be replaced any more. Raises ProviderError elsewhere.
    """
    if block.parent_height > at.height:
        if whole or block.height > head - cursors.BLOCKS_SETTLED:
            raise ProviderError(f"block {block.height} came without those between it and block {at.height}")
        return True
    return (block.parent_height, block.parent_hash) == (at.height, at.hash)


def _record(
    ctx: Context,
    network: Network,
    chain: Reader,
    cursor: Cursor,
    scan: BlockScan,
    ours: Matching,
    head: int,
    left: Mapping[str, Left],
) -> bool:
    with transaction():
        block = scan.block
        if not cursors.advance(_row(network, block, read_by=scan.read_by), expected=cursor, head=head):
            return False
        outflow.note(network, scan, left.get(block.hash, NOTHING))
        for transfer in scan.transfers:
            take_transfer(ctx, network, chain, block, transfer, ours)
    return True


def _walk_back(ctx: Context, network: Network, chain: Reader, cursor: Cursor) -> Cursor | None:
    """Find the last kept block that the chain still has, take back what came after it, and resume there.

    None where there is nothing to go on with: what the node lacks it may not have seen yet, so that only another block
    in the place of ours proves a reorg; and while as many providers keep our block as have another, nobody knows. What
    may have been credited is not taken back on one provider's word alone, where there are more.
    """
    kept = cursors.kept_blocks(network.code)
    fork = _fork(chain, kept)
    if fork is None:
        return _from_the_start(ctx, network, chain, cursor, kept)
    height, replaced = fork
    if replaced is None or _is_disputed(network, chain, replaced, depth=cursor.height - height):
        return None
    _check_upon(chain, (height, dict(kept)[height]), replaced[0])
    log.warning("scan.reorg", network=network.code, depth=cursor.height - height, fork_height=height)
    with transaction():
        moved = cursors.retreat(network.code, expected=cursor, to_height=height)
        if moved:
            outflow.take_back(network)
    if not moved:
        return None
    cursors.resume(network.code)
    _reverse_orphans(ctx, network)
    return cursors.read(network.code)


def _fork(chain: Reader, kept: Sequence[tuple[int, str]]) -> tuple[int, tuple[int, str] | None] | None:
    """Return the newest kept height that the chain still has, and the kept block above it that it replaced.

    None where it has none of them. Ours are a chain and so are theirs, so that a bisection finds where they part; what
    is above the chain's own end is lacking there, not replaced; what it skipped is replaced by what follows.
    """
    ended = 0
    while ended < len(kept) and chain.block(kept[ended][0]) is None:
        ended += 1
    low, high = ended, len(kept)
    while low < high:
        middle = (low + high) // 2
        if _is_same(chain.block(kept[middle][0]), kept[middle][1]):
            high = middle
        else:
            low = middle + 1
    if low == len(kept):
        return None
    return kept[low][0], kept[low - 1] if low > ended else None


def _check_upon(chain: Reader, fork: tuple[int, str], height: int) -> None:
    """Refuse a chain whose first block above the fork does not stand upon it. height: of a block that was replaced.

    Where blocks prove their work, another chain is put beside ours by whoever works alone. Raises ProviderError.
    """
    for at in range(fork[0] + 1, height + HOLE_MAX):
        found = chain.block(at)
        if isinstance(found, Block):
            if (found.parent_height, found.parent_hash) == fork:
                return
            if chain.providers > 1:
                # Whoever is alone with it is asked last from now on.
                chain.agreement(found.height, found.hash)
            raise ProviderError(f"block {at} does not stand upon block {fork[0]}")
        if found is None:
            if at <= height:
                raise ProviderError(f"block {at} was there and is not any more")
            return


def _is_same(found: Block | Skipped | None, block_hash: str) -> bool:
    return isinstance(found, Block) and found.hash == block_hash


def _is_disputed(network: Network, chain: Reader, replaced: tuple[int, str], *, depth: int) -> bool:
    """Return whether as many providers still have our block as have another in its place, or one alone tells of that.

    One alone is believed while nothing that it takes back may have been credited.
    """
    if chain.providers == 1:
        return False
    ours = chain.agreement(*replaced)
    if ours.same and ours.same >= ours.other:
        if cursors.halt(network.code, "providers disagree about a block"):
            log.error("scan.providers_disagree", network=network.code, height=replaced[0])
        return True
    if ours.other >= WITNESSES_MIN or depth < network.confirmations:
        return False
    if cursors.halt(network.code, "one provider alone shows that credited blocks were replaced"):
        log.error("scan.reorg_of_one_provider", network=network.code, height=replaced[0], depth=depth)
    return True


def _from_the_start(
    ctx: Context, network: Network, chain: Reader, cursor: Cursor, kept: Sequence[tuple[int, str]]
) -> Cursor | None:
    """Go on after a reorg that reaches below all kept blocks: possible only if the scan itself began there."""
    started = cursors.started_height(network.code)
    block = _at_or_below(chain, kept[-1][0]) if kept else None
    if block is None:
        return None
    if started is None or kept[-1][0] > started:
        if cursors.halt(network.code, "a reorg deeper than the kept blocks"):
            log.error("scan.halted", network=network.code)
        return None
    if _is_disputed(network, chain, kept[-1], depth=cursor.height - kept[-1][0] + 1):
        return None
    log.warning("scan.reorg_below_start", network=network.code, height=block.height)
    with transaction():
        moved = cursors.restart(_row(network, block), expected=cursor)
        if moved:
            outflow.take_back(network)
    if not moved:
        return None
    cursors.resume(network.code)
    _reverse_orphans(ctx, network)
    return cursors.read(network.code)


def _reverse_orphans(ctx: Context, network: Network) -> None:
    topups.reverse_orphans(network.code)
    unknown_spends.take_out(network.code)
    reversals.reverse_orphans(ctx.catalogue, network.code)


def _settle(ctx: Context, network: Network, chain: Reader) -> None:
    for kind in SETTLE:
        due = deposits.owners_due(network.code, kind=kind, confirmations=network.confirmations, limit=SETTLED_PER_STEP)
        settle_owners(ctx, ((kind, owner_id) for owner_id in due))
    crediting.release_matured(network, limit=RELEASED_PER_STEP, run=isolated)
    # With one provider alone, a second reading is its own.
    is_reread = ctx.settings.rescan_s > 0 and chain.providers > 1
    topups.book_matured(network, limit=RELEASED_PER_STEP, after_rereading=is_reread)

"""Moves the scan back after a reorg, and pauses it while providers disagree. Used by actors.scan.follow.

If a network has several providers, one alone never causes credited deposits to be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from actors.context import Context
from actors.scan import observers
from actors.scan.reading import Matching
from chains.base import SKIPPED, WITNESSES_MIN, Agreement, Block, BlockScan, ProviderError, Skipped
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.deposits import cursors, probes
from models.deposits.cursors import Cursor
from models.deposits.rows import ChainBlock
from models.outcomes import reversals
from models.spends import signing_stops, unexplained
from models.treasury import topups

log = structlog.get_logger()

# The number of skipped heights in a row that one search for a block goes over; beyond it the next step looks again.
HOLE_MAX: Final = 64


def at_or_below(chain: Reader, height: int) -> Block | None:
    """Return the newest block up to a height; None if the chain is shorter or skips too many heights."""
    for at in range(height, max(height - HOLE_MAX, -1), -1):
        block = chain.block(at)
        if block is not SKIPPED:
            return block if isinstance(block, Block) else None
    return None


def row(network: Network, block: Block, *, read_by: str = "") -> ChainBlock:
    """Return a block's row. read_by: the mark of the provider that returned the block."""
    return ChainBlock(
        network=network.code,
        height=block.height,
        hash=block.hash,
        parent_height=block.parent_height,
        parent_hash=block.parent_hash,
        block_time=block.time,
        block_count=block.count,
        read_by=read_by,
    )


def walk_back(ctx: Context, network: Network, chain: Reader, cursor: Cursor, head: int) -> Cursor | None:
    """Find the last kept block that the chain still has, take back the deposits after it, and resume there.

    None if the scan has to wait. A block that the node lacks it may not have seen yet: only another block at its height
    proves a reorg. While as many providers have our block as have another, the reorg is undecided. If there are several
    providers, deposits that may have been credited are not taken back because of one provider alone.
    """
    kept = cursors.kept_blocks(network.code)
    fork = _fork(chain, kept, head)
    if fork is None:
        return _from_the_start(ctx, network, chain, cursor, kept)
    height, replaced = fork
    if replaced is None:
        return None
    depth = cursors.peak_height(network.code) - height
    is_agreed = _agreed(network, chain, replaced, depth=depth)
    if is_agreed is None:
        return None
    _check_upon(chain, (height, dict(kept)[height]), replaced[0])
    log.warning("scan.reorg", network=network.code, depth=cursor.height - height, fork_height=height)
    retreat = partial(cursors.retreat, network.code, to_height=height)
    return go_on(ctx, network, cursor, retreat, height=height, is_agreed=is_agreed)


def _fork(chain: Reader, kept: Sequence[tuple[int, str]], head: int) -> tuple[int, tuple[int, str] | None] | None:
    """Return the newest kept height that the chain still has, and the kept block above it that it replaced.

    None if the chain has no kept block. Kept blocks form a chain and so do the provider's, so that a bisection finds
    the fork. Kept blocks above the chain's end are missing there, not replaced; a height that the chain skipped counts
    as replaced. No provider is asked for blocks above the head: only one that invented them would answer.
    """
    ended = sum(height > head for height, _ in kept)
    while ended < len(kept) and chain.block(kept[ended][0]) is None:
        ended += 1
    low, high = ended, len(kept)
    while low < high:
        middle = (low + high) // 2
        if is_same(chain.block(kept[middle][0]), kept[middle][1]):
            high = middle
        else:
            low = middle + 1
    if low == len(kept):
        return None
    return kept[low][0], kept[low - 1] if low > ended else None


def _check_upon(chain: Reader, fork: tuple[int, str], height: int) -> None:
    """Refuse a chain whose first block above the fork has another parent. height: that of a replaced block.

    Where blocks prove work, a provider could otherwise show a chain that it made alone. Raises ChainError.
    """
    for at in range(fork[0] + 1, height + HOLE_MAX):
        block = chain.block(at)
        if isinstance(block, Block):
            if (block.parent_height, block.parent_hash) == fork:
                return
            if chain.providers > 1:
                # A provider that alone has this block is asked last from now on.
                chain.agreement(block.height, block.hash)
            raise ProviderError(f"block {at} does not stand upon block {fork[0]}")
        if block is None:
            if at <= height:
                raise ProviderError(f"block {at} was there and is not any more")
            return


def check_count(network: Network, chain: Reader, block: Block) -> None:
    """Refuse a block from which the scan is to go on unless another provider, if any, counts the same blocks.

    All later blocks are counted from it. Raises ProviderError.
    """
    if block.count is None or chain.providers == 1:
        return
    again = chain.reread(block.height, Matching(network))
    if not isinstance(again, BlockScan) or (again.block.hash, again.block.count) != (block.hash, block.count):
        raise ProviderError(f"one provider alone calls block {block.height} number {block.count}")


def is_same(block: Block | Skipped | None, block_hash: str) -> bool:
    """Return whether a chain's answer is the block of this hash."""
    return isinstance(block, Block) and block.hash == block_hash


def _agreed(network: Network, chain: Reader, replaced: tuple[int, str], *, depth: int) -> bool | None:
    """Return True if two providers, or the only one, have replaced our block; False if one of several has.

    One of several is believed while no deposit that it takes back may have been credited. None if it is not believed,
    which halts the scan, or if as many providers still have our block. depth: counted from the highest block by which
    deposits were ever credited, so that several small steps back do not evade the limit.
    """
    if chain.providers == 1:
        return True
    ours = chain.agreement(*replaced)
    if _is_disputed(ours):
        # If most have our block, the next step asks them, since the others rest.
        if ours.same < WITNESSES_MIN or ours.same == ours.other:
            _halt_disputed(network, replaced[0])
        return None
    if ours.other >= WITNESSES_MIN:
        return True
    if depth < network.confirmations:
        return False
    if cursors.halt(network.code, "one provider alone shows that credited blocks were replaced"):
        log.error("scan.reorg_of_one_provider", network=network.code, height=replaced[0], depth=depth)
    return None


def _is_disputed(ours: Agreement) -> bool:
    """Return whether at least as many providers have our block as have another at its height."""
    return ours.same > 0 and ours.same >= ours.other


def _halt_disputed(network: Network, height: int) -> None:
    if cursors.halt(network.code, "providers disagree about a block"):
        log.error("scan.providers_disagree", network=network.code, height=height)


def is_split(network: Network, chain: Reader, height: int) -> bool:
    """Return whether providers still disagree about a height where the second reading found two blocks.

    The scan waits while they do. It resumes once they agree on a block; if that is not ours, it is an ordinary reorg.
    """
    kept = cursors.kept_hash(network.code, height)
    ours = Agreement(same=0, other=0) if kept is None else chain.agreement(height, kept)
    if is_tied(network, height, ours):
        return True
    cursors.note_split(network.code, None)
    return False


def is_tied(network: Network, height: int, agreement: Agreement) -> bool:
    """Halt the scan and return True if as many providers have a block as have another."""
    if not agreement.other or agreement.same != agreement.other:
        return False
    _halt_disputed(network, height)
    return True


def _from_the_start(
    ctx: Context, network: Network, chain: Reader, cursor: Cursor, kept: Sequence[tuple[int, str]]
) -> Cursor | None:
    """Resume after a reorg below all kept blocks: possible only if the scan itself began there."""
    started = cursors.started_height(network.code)
    block = at_or_below(chain, kept[-1][0]) if kept else None
    if block is None:
        return None
    if started is None or kept[-1][0] > started:
        if cursors.halt(network.code, "a reorg deeper than the kept blocks"):
            command = f"sluice scan rewind {network.code} --to HEIGHT"
            log.error("scan.halted", network=network.code, command=command)
        return None
    depth = cursors.peak_height(network.code) - kept[-1][0] + 1
    is_agreed = _agreed(network, chain, kept[-1], depth=depth)
    if is_agreed is None:
        return None
    check_count(network, chain, block)
    log.warning("scan.reorg_below_start", network=network.code, height=block.height)
    restart = partial(cursors.restart, row(network, block))
    return go_on(ctx, network, cursor, restart, height=block.height, is_agreed=is_agreed)


def go_on(
    ctx: Context, network: Network, cursor: Cursor, move: Callable[..., bool], *, height: int, is_agreed: bool
) -> Cursor | None:
    """Move the cursor back to a height, and take back all deposits above it. None if another process moved it.

    move: cursors.retreat or cursors.restart, without `expected` and `peak`. is_agreed: two providers, or the only one,
    have the block of that height.
    """
    # Confirmations of deposits credited below the height were counted up to at most this block.
    peak = height + network.confirmations - 1 if is_agreed else None
    with transaction():
        moved = move(expected=cursor, peak=peak)
        if moved:
            observers.take_back(network)
            probes.fall_back(network.code, height)
            signing_stops.fall_behind(network.code)
    if not moved:
        return None
    cursors.resume(network.code)
    reverse_orphans(ctx, network)
    return cursors.read(network.code)


def reverse_orphans(ctx: Context, network: Network) -> None:
    """Take back deposits, top-ups and departures of blocks that are no longer part of the scanned chain.

    Safe to run any number of times.
    """
    topups.reverse_orphans(network.code)
    unexplained.take_out(network.code)
    reversals.reverse_orphans(ctx.catalogue, network.code)

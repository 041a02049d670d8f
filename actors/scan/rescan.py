"""Reads scanned blocks a second time, in another way and from another provider. Notified by the scheduler.

The first reading trusts a filter and the logs of one node; this one reads every receipt of the block. It finds deposits
that a lagging or lying node hid, and asks for witnesses of those that only one node showed. `sluice rescan` runs it
over chosen blocks. If there are several providers, another one than before has to return the block. A block that it
lacks is read later; blocks given up after RESCAN_S are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan import observers
from actors.scan.reading import Matching
from actors.scan.record import booked_as, doubt, settle_owners
from chains.base import BlockScan, Skipped
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors
from models.deposits import rows as deposits
from models.treasury import topup_doubts

log = structlog.get_logger()

BLOCKS_PER_STEP: Final = 40
# The newest blocks are left to the scan, by number and by time: nodes that lag a little have caught up then.
BEHIND: Final = 6
BEHIND_S: Final = 15
# However small RESCAN_S is, the second reading may fall behind by this many blocks.
DEPTH_MIN: Final = 6
MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The outcome of reading a block again."""

    height: int
    # None if no other provider has the block, or it is not the scanned one; '' if both skip it.
    block_hash: str | None
    recorded: int = 0
    doubted: int = 0


@network_tick("rescan")
def rescan_recent(ctx: Context, network: Network, chain: Reader) -> bool:
    """Read blocks again from where the last step ended, but no older ones than the settings allow.

    A block that no other provider has, or that they have replaced, ends the step: the next one begins there.
    """
    cursor = cursors.read(network.code)
    if cursor is None or ctx.settings.rescan_s == 0:
        cursors.end_rereading(network.code)
        return False
    first, last = _span(network, cursor.height, depth=depth_blocks(network, ctx.settings.rescan_s))
    for height in range(first, min(last, first + BLOCKS_PER_STEP - 1) + 1):
        block_hash = reread(ctx, network, chain, height).block_hash
        if block_hash is None or not cursors.reread_to(network.code, height, block_hash=block_hash):
            return False
    # Fast chains make more blocks between two runs than a step reads.
    return last >= first + BLOCKS_PER_STEP


def behind_blocks(network: Network) -> int:
    """Return the number of newest blocks that are not read a second time yet."""
    return max(BEHIND, BEHIND_S * MS_PER_S // network.block_time_ms)


def depth_blocks(network: Network, seconds: int) -> int:
    """Return the number of blocks that a network makes in a number of seconds."""
    return seconds * MS_PER_S // network.block_time_ms


def _span(network: Network, scanned: int, *, depth: int) -> tuple[int, int]:
    """Return the first and the last block to read now; give up blocks that fell too far behind."""
    last, reached = scanned - behind_blocks(network), cursors.reread_height(network.code)
    oldest = max(min(scanned - depth, last - DEPTH_MIN + 1), (cursors.started_height(network.code) or 0) + 1)
    if reached is None:
        return oldest, last
    if reached + 1 < oldest and cursors.give_up_rereading(network.code, first=reached + 1, last=oldest - 1):
        log.error("rescan.blocks_given_up", network=network.code, first=reached + 1, last=oldest - 1)
    return max(oldest, reached + 1), last


def reread(ctx: Context, network: Network, chain: Reader, height: int) -> Reread:
    """Read a block again and record missed deposits; safe to run any number of times. Raises ChainError."""
    ours = Matching(network)
    scan = chain.reread(height, ours, but_by=cursors.read_by(network.code, height))
    kept = cursors.kept_hash(network.code, height)
    if isinstance(scan, Skipped):
        return Reread(height=height, block_hash="" if kept is None else None)
    if scan is None or not cursors.stands_on(network.code, height=height, block_hash=scan.block.hash):
        if scan is not None and kept not in {None, scan.block.hash}:
            _note_split(network, chain, height, kept)
        return Reread(height=height, block_hash=None)
    recorded = observers.note_again(ctx, network, chain, scan, ours).recorded
    if recorded:
        log.warning("rescan.deposits_found", network=network.code, height=height, count=recorded)
    settle_owners(ctx, ours.of(scan.transfers))
    doubted = _doubt_absent(ctx, network, chain, scan)
    return Reread(height=height, block_hash=scan.block.hash, recorded=recorded, doubted=doubted)


def _note_split(network: Network, chain: Reader, height: int, kept: str) -> None:
    """Pause the scan at a height if other providers have another block, unless more of them have ours."""
    if chain.providers == 1:
        return
    ours = chain.agreement(height, kept)
    if ours.other and ours.other >= ours.same:
        cursors.note_split(network.code, height)


def _doubt_absent(ctx: Context, network: Network, chain: Reader, scan: BlockScan) -> int:
    """Ask for witnesses of deposits and top-ups that the second reading lacks or shows differently.

    For confirmed ones it is too late: they are only logged.
    """
    shown = {booked_as(ctx.catalogue, network, transfer) for transfer in scan.transfers}
    absent = [
        booked
        for read in (deposits.in_block, topup_doubts.in_block)
        for booked in read(network.code, scan.block.height, scan.block.hash)
        if booked not in shown
    ]
    for booked in absent:
        log.error("rescan.deposit_missing", network=network.code, height=scan.block.height, txid=booked.txid)
        if chain.providers > 1:
            doubt(network.code, booked.txid, booked.ordinal)
    return len(absent)

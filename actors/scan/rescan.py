"""Reads scanned blocks a second time, in another way and if possible by another provider. Rung by the scheduler.

The first reading trusts a filter and the logs of one node; this one takes every receipt of the block. It finds what a
lagging or lying node hid, and doubts what only one node showed. `sluice rescan` runs it over blocks of its choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan import departures
from actors.scan.intake import Matching, settle_owners, take_late
from chains.base import BlockScan, Skipped
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors
from models.deposits import rows as deposits
from models.deposits import witnesses as quorum
from models.treasury import topup_doubts

log = structlog.get_logger()

BLOCKS_PER_STEP: Final = 40
# So many of the newest blocks are left to the scan: nodes that lag by a block or two have caught up then.
BEHIND: Final = 6
MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The outcome of reading a block again."""

    height: int
    # None where the block is not there, or is not the one that the scan stands on; '' where both skip the height.
    block_hash: str | None
    found: int = 0
    doubted: int = 0


@network_tick("rescan")
def rescan_recent(ctx: Context, network: Network, chain: Reader) -> bool:
    """Read on where the last step ended, but never further back than the settings say."""
    cursor = cursors.read(network.code)
    if cursor is None or ctx.settings.rescan_s == 0:
        return False
    first, last = _span(network, cursor.height, depth=depth_blocks(network, ctx.settings.rescan_s))
    for height in range(first, min(last, first + BLOCKS_PER_STEP - 1) + 1):
        reread(ctx, network, chain, height)
        cursors.reread_to(network.code, height)
    # Fast chains make more blocks between two rings than a step reads.
    return last >= first + BLOCKS_PER_STEP


def depth_blocks(network: Network, seconds: int) -> int:
    """Return how many blocks a network makes in so many seconds."""
    return seconds * MS_PER_S // network.block_time_ms


def _span(network: Network, scanned: int, *, depth: int) -> tuple[int, int]:
    """Return the first and the last block that are to be read now."""
    oldest = max(scanned - depth, (cursors.started_height(network.code) or 0) + 1)
    return max(oldest, (cursors.reread_height(network.code) or 0) + 1), scanned - BEHIND


def reread(ctx: Context, network: Network, chain: Reader, height: int) -> Reread:
    """Read a block again and record what was missed; safe to run any number of times. Raises ProviderError."""
    ours = Matching(network)
    scan, kept = chain.reread(height, ours), cursors.kept_hash(network.code, height)
    if isinstance(scan, Skipped):
        return Reread(height=height, block_hash="" if kept is None else None)
    if scan is None or kept not in {None, scan.block.hash} or (kept is None and cursors.is_hole(network.code, height)):
        return Reread(height=height, block_hash=None)
    found = take_late(ctx, network, chain, scan, ours, departures.left_in(ctx, network, chain, [scan]))
    if found:
        log.warning("rescan.deposits_found", network=network.code, height=height, count=found)
    settle_owners(ctx, ours.of(scan.transfers))
    doubted = _doubt_absent(network, chain, scan)
    return Reread(height=height, block_hash=scan.block.hash, found=found, doubted=doubted)


def _doubt_absent(network: Network, chain: Reader, scan: BlockScan) -> int:
    """Ask for witnesses of what is recorded in a block and was not seen in it again; too late once it is confirmed."""
    shown = {(transfer.txid, transfer.ordinal) for transfer in scan.transfers}
    absent = [
        (txid, ordinal)
        for read in (deposits.keys_in_block, topup_doubts.keys_in_block)
        for txid, ordinal in read(network.code, scan.block.height, scan.block.hash)
        if (txid, ordinal) not in shown
    ]
    for txid, ordinal in absent:
        log.error("rescan.deposit_missing", network=network.code, height=scan.block.height, txid=txid)
        if chain.providers > 1:
            quorum.doubt(network.code, txid, ordinal)
            topup_doubts.doubt(network.code, txid, ordinal)
    return len(absent)

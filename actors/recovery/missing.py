"""Finds departures in blocks that were read without their transactions. No actor; called by actors.recovery.seek.

Far behind the head, the scan reads only logs if the gas coin itself is not offered, and a plain transfer of it leaves
no log. Such a transaction is missed, and then the chain has used a slot that no row explains: signing stops. This
module asks for the slot count at older blocks, finds the block that used the slot, and reads that block whole. If a
provider does not show the departure there, another one is asked. A node that has discarded its state cannot answer;
then signing stays stopped, and an operator reads the blocks again.
"""

from __future__ import annotations

import time
from typing import Final

import structlog

from actors.context import Context
from actors.scan import observers
from actors.scan.reading import Matching
from actors.scan.record import settle_owners
from chains.base import BlockScan, ProviderError
from chains.family import CounterReader
from chains.net.budget import BudgetSpentError
from core.catalogue.catalogue import Network
from models.deposits import cursors
from models.spends import signing_stops, slots
from models.treasury import addresses

log = structlog.get_logger()

# Each takes some twenty requests to find its block, and a handful for the block's transactions.
SOUGHT_PER_STEP: Final = 5
# After a search without an answer or a finding, the next one waits this long.
REST_S: Final = 60.0

_rests_until: dict[str, float] = {}


def seek(ctx: Context, network: Network, chain: CounterReader) -> int:
    """Find a few of a stopped network's missing departures, once the scan has reached the head; return their number.

    For families that note departures by counter. Call outside of transactions. Failing nodes are no
    error: the next step tries again.
    """
    stopped = signing_stops.read(network.code)
    cursor = cursors.read(network.code)
    if stopped is None or not stopped.is_caught_up or cursor is None:
        return 0
    if time.monotonic() < _rests_until.get(network.code, 0.0):
        return 0
    count, is_lacking = 0, False
    for sender in sorted({addresses.address(network.code, "hot") or "", stopped.sender} - {""}):
        try:
            lacking = _missing(network, chain, sender, cursor.height)
            is_lacking = is_lacking or bool(lacking)
            count += sum(_find(ctx, network, chain, sender, slot, cursor.height) for slot in lacking)
        except BudgetSpentError:
            is_lacking = True
            break
        except ProviderError as error:
            is_lacking = True
            log.warning("departure.not_found", network=network.code, sender=sender, problem=str(error))
    if is_lacking and not count:
        _rests_until[network.code] = time.monotonic() + REST_S
    return count


def _missing(network: Network, chain: CounterReader, sender: str, height: int) -> list[int]:
    used = chain.used_counters(sender, height)
    return slots.unexplained(network.code, sender, used, limit=SOUGHT_PER_STEP)


def _find(ctx: Context, network: Network, chain: CounterReader, sender: str, slot: int, scanned: int) -> bool:
    """Find the block that used a slot and read it whole; return whether the departure is noted now.

    Providers may name different blocks; each is read until one has the departure.
    """
    before, after = slots.between(network.code, sender, slot)
    if before is None:
        before = cursors.started_height(network.code) or 0
    heights = chain.counter_heights(sender, slot, before - 1, scanned if after is None else after)
    height = next((each for each in heights if _is_in(ctx, network, chain, sender, slot, each)), None)
    log.warning(
        "departure.sought", network=network.code, sender=sender, slot=slot,
        height=heights[0] if height is None else height, is_found=height is not None,
    )  # fmt: skip
    return height is not None


def _is_in(ctx: Context, network: Network, chain: CounterReader, sender: str, slot: int, height: int) -> bool:
    """Read a block whole, and again from another provider if it lacks a departure; return whether one shows it."""
    ours = Matching(network)
    scan = next(iter(chain.scan(height - 1, height, ours, whole=True)), None)
    if scan is not None and _shows(ctx, network, chain, scan, ours, sender, slot):
        return True
    if chain.providers == 1:
        return False
    again = chain.reread(height, ours, but_by="" if scan is None else scan.read_by)
    return isinstance(again, BlockScan) and _shows(ctx, network, chain, again, ours, sender, slot)


def _shows(
    ctx: Context, network: Network, chain: CounterReader, scan: BlockScan, ours: Matching, sender: str, slot: int
) -> bool:
    """Note a block; return True if it has the departure that used a slot."""
    left = observers.note_again(ctx, network, chain, scan, ours).left
    settle_owners(ctx, ours.of(scan.transfers))
    return any((each.sender, each.slot) == (sender, slot) for each in left.unexplained)

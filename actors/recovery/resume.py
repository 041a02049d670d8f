"""Resumes signing after the database lost its last commits. Runs in the signer process.

Notified by the code that stops a network, by each step of the scan and of the signer while it is stopped, and rarely by
the scheduler.

While the signer may not sign for a network, each unexplained departure is adopted by the order that asks for it.
Signing resumes once the scan has reached the head, no departure is unexplained and the chain has used no slot beyond
our count.
Where spends claim coins, there is one more condition: no transaction without a row may wait for a block and spend one
of our coins, since the signer would pay the same order again with other coins.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.doorbells import ring
from actors.queue.isolated import isolated
from actors.signer import rollback, spenders
from chains.base import ProviderError
from chains.family import CoinSpender, CounterSpender, Reader
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.deposits import cursors
from models.recovery import adoption
from models.spends import coins, signing_stops, slots, unexplained
from models.spends import rows as spends
from models.spends.signing_stops import Stop
from models.treasury import addresses

log = structlog.get_logger()

# For this long one node is believed that says a transaction with our coins or slots waits for a block: pools differ,
# and a node that lies can delay a wallet no longer than this.
CAUTIOUS_S: Final = 1_800
# The number of waiting transactions named in the log.
NAMED_MAX: Final = 20


@network_tick("resume", queue="signer")
def resume_signing(ctx: Context, network: Network, _chain: Reader) -> None:
    """Take a step towards signing for a stopped network again."""
    if signing_stops.read(network.code) is None:
        # The signer and the scan stop a network, each before it does anything else; here a stop is only lifted.
        _dismiss_void(network)
        return
    # A database that went back may hold an older stop, which has to begin again before it may be lifted.
    rollback.look()
    stopped = signing_stops.watch(network.code)
    if stopped is not None and _lift(ctx, network, stopped):
        ring("broadcast", network.code)


def _lift(ctx: Context, network: Network, stopped: Stop) -> bool:
    """Adopt the departures that orders explain, and lift the stop if signing may resume; return True if lifted."""
    # Before signing can resume: the loss may include which address was shown to which buyer.
    signing_stops.renew_pool(network.family)
    for departure in unexplained.open_ones(network.code):
        isolated(departure.id, _adopt, ctx, departure.id)
    try:
        return _resumed(ctx, network, stopped)
    except ProviderError as error:
        log.warning("signing.not_compared", network=network.code, error=str(error))
        return False


def _dismiss_void(network: Network) -> None:
    """Dismiss the departures of a network without a stop that no block can include now; adopt none.

    A reorg took them, so they held nothing up. Cheques of their sums wait for them.
    """
    for departure in unexplained.open_ones(network.code):
        isolated(departure.id, _dismiss, departure.id)


def _dismiss(departure_id: UUID) -> bool:
    with transaction():
        return adoption.dismiss(departure_id)


def _adopt(ctx: Context, departure_id: UUID) -> bool:
    with transaction():
        return adoption.adopt(ctx.catalogue, departure_id)


def _resumed(ctx: Context, network: Network, stopped: Stop) -> bool:
    # Spares the nodes' requests; resume() decides, under its lock.
    if not stopped.is_caught_up or signing_stops.has_unexplained(network.code):
        return False
    spender, cautious = spenders.spender_of(ctx, network), stopped.age_s < CAUTIOUS_S
    counter, holder = spenders.counting(network, spender), spenders.holding(network, spender)
    slots: dict[str, int] = {}
    if holder is not None and _is_awaited(network, holder, cautious=cautious):
        return False
    if counter is None:
        # No slots to compare: only the scan finds unexplained departures in blocks.
        return signing_stops.resume(stopped, slots)
    for sender in {addresses.address(network.code, "hot"), stopped.sender} - {None, ""}:
        slot = _agreed_slot(network, counter, str(sender), cautious=cautious)
        if slot is None:
            return False
        slots[str(sender)] = slot
    return signing_stops.resume(stopped, slots)


def _agreed_slot(network: Network, counter: CounterSpender, sender: str, *, cautious: bool) -> int | None:
    """Return a sender's next slot if chain and rows agree about it; None if the chain has used more.

    If no row has a spend of the sender, the slots it used lie before the first scanned block.
    """
    known = spends.known_slot(network.code, sender)
    used = counter.next_counter(sender, ours=known or 0)
    ours = used if known is None else known
    waiting = counter.waiting_counter(sender, ours=ours, cautious=cautious)
    missing = slots.unexplained(network.code, sender, ours, limit=1)
    if max(used, waiting) <= ours and not missing:
        return ours
    log.error(
        "signing.slots_unexplained", network=network.code, sender=sender, next_slot=ours,
        used=used, waiting=waiting, missing=missing,
    )  # fmt: skip
    return None


def _is_awaited(network: Network, holder: CoinSpender, *, cautious: bool) -> bool:
    """Return whether a transaction without a row waits for a block and spends one of our coins.

    A transaction that enters a block meanwhile is in no pool and in none of our rows yet. So a node's pool counts only
    if the node has the block at the scan's cursor: a transaction in none of its blocks is in its pool, and one that the
    scan finds in a later block is noted before signing resumes. While one node's answer is enough, a node that started
    after the lost transactions may have been signed does not count: its pool may have started empty.
    """
    up_s = signing_stops.surely_known_s(network.code) if cautious else None
    cursor = cursors.read(network.code)
    block_hash = "" if cursor is None else cursor.hash
    without_row: set[str] = set()
    for portion in coins.unspent(network.code, network.gas_currency):
        waiting = holder.waiting_spends(portion, block_hash=block_hash, cautious=cautious, up_s=up_s)
        without_row |= unexplained.without_row(network.code, waiting)
    if without_row:
        named = sorted(without_row)[:NAMED_MAX]
        log.error("signing.spends_waiting", network=network.code, waiting=len(without_row), txids=named)
    return bool(without_row)


def is_awaited(ctx: Context, network: Network) -> bool:
    """Return whether a transaction without a row may wait for a block or be in an unscanned one.

    For an operator who gives money back while signing for the network is stopped. Where spends claim a window, it is
    enough that the scan has caught up. Raises ChainError.
    """
    spender = spenders.spender_of(ctx, network)
    counter, holder = spenders.counting(network, spender), spenders.holding(network, spender)
    if holder is not None:
        return _is_awaited(network, holder, cautious=True)
    hot = addresses.address(network.code, "hot")
    return counter is not None and hot is not None and _agreed_slot(network, counter, hot, cautious=True) is None

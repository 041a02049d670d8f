"""Finds its way back after the database has lost its last commits.

A step of the signer's, called by actors.signer.broadcast.
While a network is not signed for, what left our addresses and no row knows is adopted by whatever asks for it. Once the
scan has stood at the head, nothing is unknown and the chain has used no slot beyond our count, signing goes on. Where
coins are claimed, nothing that no row knows may wait for a block and spend one: what it pays would be paid anew, with
other coins.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.queue import watermark
from actors.queue.doorbells import ring
from actors.queue.isolated import isolated
from actors.signer import spend as spending
from chains.base import ProviderError
from chains.family import CoinSpender, CounterSpender, Spender
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.deposits import cursors
from models.outcomes import spends as payout_spends
from models.spends import coins, freshness, signing, slots
from models.spends import rows as spends
from models.spends import unknown as unknown_spends
from models.spends.signing import Stop
from models.treasury import adoption, sweeps, writeoffs
from models.treasury import own_addresses as treasury

log = structlog.get_logger()

# Whose spends may be adopted: they have registered what that means.
KNOWN: Final = (payout_spends, sweeps, writeoffs)
# For so long one node's word that something of ours waits for a block is enough: pools differ, and whoever lies may
# hold up a wallet for that long and no longer.
CAUTIOUS_S: Final = 1_800
# Of what waits, so many are named in the log.
NAMED_MAX: Final = 20
# Why each network waited for its scan at the last step, '' for those that did not.
_reasons: dict[str, str] = {}

WAITING: Final = "transactions that no row knows wait for a block and spend our coins"


def advance(ctx: Context, network: Network) -> bool:
    """Take a step back to where the network may be signed for; return whether it may."""
    watermark.look()
    stopped = signing.watch(network.code)
    if stopped is None:
        return _has_read(network)
    # Before it can be over: what lost the transactions may have lost who was shown which address.
    signing.renew_pool(network.family)
    for unknown in unknown_spends.open_ones(network.code):
        isolated(unknown.id, _adopt, ctx, unknown.id)
    try:
        is_over = _is_over(ctx, network, stopped)
    except ProviderError as error:
        log.warning("signing.not_compared", network=network.code, error=str(error))
        is_over = False
    if not is_over:
        signing.tell_payouts(network.code, stopped.reason)
        return False
    return _has_read(network)


def _has_read(network: Network) -> bool:
    """Return whether the scan has read all that left, without which nothing is signed; let payouts say why they wait.

    What ends with the scan's next look is not told: the scan looks at once.
    """
    before, reason = _reasons.get(network.code), freshness.obstacle(network.code)
    _reasons[network.code] = reason
    if not reason:
        if before != "":
            # Also those that an earlier process told.
            signing.wake_payouts(network.code)
        return True
    if not reason.startswith(freshness.HALTED):
        ring("poll_network", network.code)
    if reason != freshness.UNREAD:
        if reason != before:
            log.warning("signing.held_up", network=network.code, reason=reason)
        signing.tell_payouts(network.code, reason)
    return False


def _adopt(ctx: Context, unknown_id: UUID) -> bool:
    with transaction():
        return adoption.adopt(ctx.catalogue, unknown_id)


def _is_over(ctx: Context, network: Network, stopped: Stop) -> bool:
    # Spares the nodes' questions; resume() decides, under its lock.
    if not stopped.is_caught_up or signing.has_unknown(network.code):
        return False
    spender, cautious = spending.spender_of(ctx, network), stopped.age_s < CAUTIOUS_S
    counter, holder = spending.counting(network, spender), spending.holding(network, spender)
    slots: dict[str, int] = {}
    if holder is not None and _is_awaited(network, holder, cautious=cautious):
        return False
    if counter is None:
        # Nothing is counted: what is unknown in blocks, the scan alone tells.
        return signing.resume(stopped, slots)
    for sender in {treasury.address(network.code, "hot"), stopped.sender} - {None, ""}:
        slot = _agreed_slot(network, counter, str(sender), cautious=cautious)
        if slot is None:
            return False
        slots[str(sender)] = slot
    return signing.resume(stopped, slots)


def _agreed_slot(network: Network, counter: CounterSpender, sender: str, *, cautious: bool) -> int | None:
    """Return a sender's next slot if chain and rows agree about it; None if the chain has used more.

    What one who never signed by our rows has used lies before everything that was scanned.
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
    """Return whether something that no row knows waits for a block and spends a coin of ours.

    What comes into a block meanwhile is told by neither the pools nor our rows yet. So a pool counts whose node has the
    very block up to which the scan has come: what that has in no block, its pool has, and what the scan then finds in
    a later one is unknown before signing goes on. While one word is enough, a node that began after what may be lost
    was signed does not count: its pool may have begun empty.
    """
    up_s = signing.surely_known_s(network.code) if cautious else None
    cursor = cursors.read(network.code)
    block_hash = "" if cursor is None else cursor.hash
    unknown: set[str] = set()
    for portion in coins.unspent(network.code, network.gas_currency):
        waiting = holder.waiting_spends(portion, block_hash=block_hash, cautious=cautious, up_s=up_s)
        unknown |= unknown_spends.unheard_of(network.code, waiting)
    if unknown:
        named = sorted(unknown)[:NAMED_MAX]
        log.error("signing.spends_waiting", network=network.code, waiting=len(unknown), txids=named)
    return bool(unknown)


def is_awaited(ctx: Context, network: Network) -> bool:
    """Return whether a transaction that no row knows may wait for a block, or stand in one that is not scanned yet.

    For an operator who gives money back while the network is not signed for. Of a window, the scan's word that it has
    caught up tells. Raises ProviderError.
    """
    spender = spending.spender_of(ctx, network)
    counter, holder = spending.counting(network, spender), spending.holding(network, spender)
    if holder is not None:
        return _is_awaited(network, holder, cautious=True)
    hot = treasury.address(network.code, "hot")
    return counter is not None and hot is not None and _agreed_slot(network, counter, hot, cautious=True) is None


def check_pools(network: Network, spender: Spender, sender: str) -> bool:
    """Return whether every transaction of a sender that waits with the nodes has a row; signing stops if one has none.

    Where nobody tells, whoever signs next finds that out for himself if slots are counted. Where coins are claimed,
    those are asked about of which the next may be made; where windows are, nobody can tell.
    """
    counter, holder = spending.counting(network, spender), spending.holding(network, spender)
    try:
        if counter is not None:
            return _check_slots(network, counter, sender)
        return holder is None or _check_coins(network, holder)
    except ProviderError as error:
        log.warning("signing.waiting_unknown", network=network.code, error=str(error))
        return True


def _check_slots(network: Network, counter: CounterSpender, sender: str) -> bool:
    ours = spends.next_slot(network.code, sender)
    waiting = counter.waiting_counter(sender, ours=ours, cautious=False)
    if waiting <= ours:
        return True
    with transaction():
        signing.stop(network.code, reason=spending.beyond(sender, waiting, ours), sender=sender)
    return False


def _check_coins(network: Network, holder: CoinSpender) -> bool:
    waiting = holder.waiting_spends(spending.free_outpoints(network), block_hash=None, cautious=False)
    if not unknown_spends.unheard_of(network.code, waiting):
        return True
    with transaction():
        signing.stop(network.code, reason=WAITING)
    return False

"""Finds its way back after the database has lost its last commits.

A step of the signer's, called by actors.signer.broadcast.
While a network is not signed for, what left our addresses and no row knows is adopted by whatever asks for it. Once the
scan has stood at the head, nothing is unknown and the chain has used no slot beyond our count, signing goes on.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.queue import watermark
from actors.queue.isolated import isolated
from actors.signer import spend as spending
from chains.base import ProviderError
from chains.family import CounterSpender, Spender
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.outcomes import spends as payout_spends
from models.spends import rows as spends
from models.spends import signing, slots
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


def advance(ctx: Context, network: Network) -> bool:
    """Take a step back to where the network may be signed for; return whether it may."""
    watermark.look()
    stopped = signing.watch(network.code)
    if stopped is None:
        return True
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
        signing.tell_payouts(stopped)
    return is_over


def _adopt(ctx: Context, unknown_id: UUID) -> bool:
    with transaction():
        return adoption.adopt(ctx.catalogue, unknown_id)


def _is_over(ctx: Context, network: Network, stopped: Stop) -> bool:
    # Spares the nodes' questions; resume() decides, under its lock.
    if not stopped.is_caught_up or signing.has_unknown(network.code):
        return False
    counter = spending.counting(network, spending.spender_of(ctx, network))
    slots: dict[str, int] = {}
    if counter is None:
        # Nothing is counted: what is unknown, the scan alone tells.
        return signing.resume(stopped, slots)
    for sender in {treasury.address(network.code, "hot"), stopped.sender} - {None, ""}:
        slot = _agreed_slot(network, counter, str(sender), cautious=stopped.age_s < CAUTIOUS_S)
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


def check_pools(network: Network, spender: Spender, sender: str) -> bool:
    """Return whether every transaction of a sender that waits with the nodes has a row; signing stops if one has none.

    Where nobody tells, whoever signs next finds that out for himself; where nothing is counted, nobody can.
    """
    counter = spending.counting(network, spender)
    if counter is None:
        return True
    ours = spends.next_slot(network.code, sender)
    try:
        waiting = counter.waiting_counter(sender, ours=ours, cautious=False)
    except ProviderError as error:
        log.warning("signing.waiting_unknown", network=network.code, error=str(error))
        return True
    if waiting <= ours:
        return True
    with transaction():
        signing.stop(network.code, reason=spending.beyond(sender, waiting, ours), sender=sender)
    return False

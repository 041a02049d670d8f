"""Compares the nodes' pools with the rows before new payouts are signed. A step of actors.signer.broadcast."""

from __future__ import annotations

from typing import Final

import structlog

from actors.signer import sign, spenders
from chains.base import ChainError
from chains.family import CoinSpender, CounterSpender, Spender
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.spends import rows as spends
from models.spends import signing_stops, unexplained

log = structlog.get_logger()

WAITING: Final = "transactions that no row knows wait for a block and spend our coins"


def check(network: Network, spender: Spender, sender: str) -> bool:
    """Return whether each of a sender's transactions in the nodes' pools has a row; stop signing if not.

    True also if the nodes fail; where slots are counted, signing then finds a used slot itself. Where spends claim
    coins, nodes are asked about the free coins, of which the next spend may be made. Where they claim windows, no node
    can answer.
    """
    counter, holder = spenders.counting(network, spender), spenders.holding(network, spender)
    try:
        if counter is not None:
            return _check_slots(network, counter, sender)
        return holder is None or _check_coins(network, holder)
    except ChainError as error:
        log.warning("signing.waiting_unknown", network=network.code, error=str(error))
        return True


def _check_slots(network: Network, counter: CounterSpender, sender: str) -> bool:
    ours = spends.next_slot(network.code, sender)
    waiting = counter.waiting_counter(sender, ours=ours, cautious=False)
    if waiting <= ours:
        return True
    with transaction():
        signing_stops.stop(network.code, reason=spenders.beyond(sender, waiting, ours), sender=sender)
    return False


def _check_coins(network: Network, holder: CoinSpender) -> bool:
    waiting = holder.waiting_spends(sign.free_outpoints(network), block_hash=None, cautious=False)
    if not unexplained.without_row(network.code, waiting):
        return True
    with transaction():
        signing_stops.stop(network.code, reason=WAITING)
    return False

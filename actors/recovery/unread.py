"""Reads the movements of unexplained departures, where counters do not show them.

No actor; called by actors.recovery.seek.
"""

from __future__ import annotations

import time
from typing import Final

import structlog

from actors.context import Context
from actors.scan import departures, kept
from chains.base import DisownedError, ProviderError
from chains.family import DepartureReader
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.deposits import cursors
from models.recovery import adoption
from models.spends import unexplained, unread_departures
from models.spends.unexplained import UnexplainedRow

log = structlog.get_logger()

# Each takes a few requests.
READ_PER_STEP: Final = 20
# If the nodes could not show one, requests pause for this long.
REST_S: Final = 10.0

_rests_until: dict[str, float] = {}


def read(ctx: Context, network: Network, chain: DepartureReader) -> int:
    """Read unexplained departures where counters do not show them; return the number read.

    actors.scan.departures noted them with their blocks. Call outside of transactions. Failing nodes are no error: the
    next step tries again.
    """
    if time.monotonic() < _rests_until.get(network.code, 0.0):
        return 0
    waiting = unread_departures.waiting(network.code, limit=READ_PER_STEP)
    done = sum(_read_one(ctx, network, chain, each) for each in waiting)
    if done < len(waiting):
        _rests_until[network.code] = time.monotonic() + REST_S
    return done


def _read_one(ctx: Context, network: Network, chain: DepartureReader, claimed: UnexplainedRow) -> bool:
    try:
        block = kept.block(network, chain, claimed.block_height or 0, claimed.block_hash or "")
        if block is None:
            # The block was replaced, which the scan will notice.
            return False
        departure = chain.departure(claimed.txid, block, sender=claimed.sender)
        if departure is not None and departure.sender != claimed.sender:
            raise DisownedError("another key signed the transaction")
    except DisownedError as error:
        log.warning("departure.disowned", network=network.code, txid=claimed.txid, problem=str(error))
        with transaction():
            return unread_departures.dismiss(claimed, by=adoption.GATEWAY, reason=str(error))
    except ProviderError as error:
        log.warning("departure.not_read", network=network.code, txid=claimed.txid, problem=str(error))
        return False
    if departure is None or departure.block_hash != block.hash:
        log.error("departure.contradicted", network=network.code, txid=claimed.txid)
        return False
    ours = unexplained.own(network.code, network.family, {departure.sender} - {""})
    new = departures.noted(ctx, network, departure, ours.get(departure.sender))
    with transaction():
        return cursors.is_scanned(network.code, height=block.height, block_hash=block.hash) and unexplained.note(new)

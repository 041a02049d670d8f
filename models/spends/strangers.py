"""Keeps what took from our addresses though no row of ours knows it, where no counter of a sender's tells of it.

Noted by the scan. Whatever of ours stands in a block has its row already, since bytes are committed before they are
sent: so who signed it has our keys, or the database has lost its last commits. Signing stops until a row knows it;
what it moved is read after (actors.scan.departures) and settled as an unknown transaction (models.spends.unknown).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import structlog

from models.db.base import execute, touched
from models.db.table import BY_DATABASE, Big, Table
from models.spends import signing
from models.spends import unknown as unknown_spends

log = structlog.get_logger()

REASON: Final = "transactions that no row knows took from our addresses"


class StrangerSpend(Table, table="stranger_spends t"):
    """A transaction that took from us and that no row knew."""

    network: str
    txid: str
    # '' where the chain names none.
    sender: str = ""
    # In no block while a reorg has taken it.
    block_height: Big | None
    block_hash: str | None
    noted_at: datetime = BY_DATABASE


def note(network: str, takers: Mapping[str, str], *, height: int, block_hash: str) -> int:
    """Write down those of a block's transactions that no row of ours knows, and stop the signing; return how many.

    takers: their ids, with their senders where the chain names them. Call inside the transaction that records the
    block.
    """
    unheard_of = sorted(unknown_spends.unheard_of(network, takers))
    noted = StrangerSpend.write_all(
        [
            StrangerSpend(network=network, txid=txid, sender=takers[txid], block_height=height, block_hash=block_hash)
            for txid in unheard_of
        ],
        "ON CONFLICT (network, txid) DO UPDATE SET block_height = EXCLUDED.block_height,"
        " block_hash = EXCLUDED.block_hash WHERE t.block_height IS NULL",
    )
    if noted:
        log.critical("departure.stranger", network=network, txids=unheard_of, height=height)
        signing.stop(network, reason=REASON)
    return noted


def take_out(network: str) -> int:
    """Note that those above the cursor are in no block any more; call in the transaction that moves the cursor back."""
    return execute(
        "UPDATE stranger_spends t SET block_height = NULL, block_hash = NULL FROM chain_cursors c"
        " WHERE c.network = %s AND t.network = c.network AND t.block_height > c.height",
        (network,),
    )


def disown(stranger: StrangerSpend) -> bool:
    """Note that a transaction is in no block, nor ever was in the one that it was noted in; False if it is noted anew.

    It stops the signing again wherever it is found.
    """
    return touched(
        "UPDATE stranger_spends SET block_height = NULL, block_hash = NULL WHERE (network, txid, block_hash) ="
        " (%s, %s, %s)",
        (stranger.network, stranger.txid, stranger.block_hash),
    )


def unread(network: str, *, limit: int) -> list[StrangerSpend]:
    """Return those that stand in a block and of which nobody has said yet what they moved there."""
    return StrangerSpend.read(
        "t.network = %s AND t.block_height IS NOT NULL AND NOT EXISTS (SELECT FROM spend_attempts a"
        "   WHERE (a.network, a.txid) = (t.network, t.txid)) AND NOT EXISTS (SELECT FROM unknown_spends u"
        "   WHERE (u.network, u.txid, u.block_height) = (t.network, t.txid, t.block_height))"
        " ORDER BY t.block_height, t.txid LIMIT %s",
        (network, limit),
    )

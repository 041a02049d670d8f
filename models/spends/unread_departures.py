"""Keeps unexplained departures whose movements no node has shown yet, in families where no slot shows them.

Noted by the scan. The signer commits bytes before it sends them, so each of our transactions in a block has its row. If
one has none, another party has our keys or the database has lost its last commits. Signing stops until a row knows it.
Recovery then reads its movements, and it is settled as an unexplained departure (models.spends.unexplained).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import structlog

from models.db.after_commit import Bell, ring
from models.db.base import execute, touched
from models.db.table import BY_DATABASE, Big, Table
from models.spends import signing_stops, unexplained

log = structlog.get_logger()

REASON: Final = "unexplained departures took from our addresses"


class UnreadDeparture(Table, table="stranger_spends t"):
    """A departure that was unexplained when its block was read."""

    network: str
    txid: str
    # '' if the chain names none.
    sender: str = ""
    # NULL while a reorg has taken it out of its block.
    block_height: Big | None
    block_hash: str | None
    noted_at: datetime = BY_DATABASE


def note(network: str, takers: Mapping[str, str], *, height: int, block_hash: str) -> int:
    """Record a block's transactions that no row knows, and stop the signing; return how many.

    takers: the sender of each transaction that took from us, '' if the chain names none. Call inside the transaction
    that records the block; recovery is notified after its commit.
    """
    without_row = sorted(unexplained.without_row(network, takers))
    noted = UnreadDeparture.write_all(
        [
            UnreadDeparture(network=network, txid=txid, sender=takers[txid], block_height=height, block_hash=block_hash)
            for txid in without_row
        ],
        "ON CONFLICT (network, txid) DO UPDATE SET block_height = EXCLUDED.block_height,"
        " block_hash = EXCLUDED.block_hash WHERE t.block_height IS NULL",
    )
    if noted:
        log.critical("departure.unread", network=network, txids=without_row, height=height)
        signing_stops.stop(network, reason=REASON)
        ring(Bell.SEEK_DEPARTURES, network)
    return noted


def take_out(network: str) -> int:
    """Take transactions above the cursor out of their blocks; call in the transaction that moves the cursor back."""
    return execute(
        "UPDATE stranger_spends t SET block_height = NULL, block_hash = NULL FROM chain_cursors c"
        " WHERE c.network = %s AND t.network = c.network AND t.block_height > c.height",
        (network,),
    )


def disown(claimed: UnreadDeparture) -> bool:
    """Record that a transaction is in no block and never was in the one noted; False if it was noted again meanwhile.

    If the scan finds it in any block, the signing stops again.
    """
    return touched(
        "UPDATE stranger_spends SET block_height = NULL, block_hash = NULL WHERE (network, txid, block_hash) ="
        " (%s, %s, %s)",
        (claimed.network, claimed.txid, claimed.block_hash),
    )


def waiting(network: str, *, limit: int) -> list[UnreadDeparture]:
    """Return the transactions in a block whose movements are not read yet."""
    return UnreadDeparture.read(
        "t.network = %s AND t.block_height IS NOT NULL AND NOT EXISTS (SELECT FROM spend_attempts a"
        "   WHERE (a.network, a.txid) = (t.network, t.txid)) AND NOT EXISTS (SELECT FROM unknown_spends u"
        "   WHERE (u.network, u.txid, u.block_height) = (t.network, t.txid, t.block_height))"
        " ORDER BY t.block_height, t.txid LIMIT %s",
        (network, limit),
    )

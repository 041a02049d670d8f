"""Keeps the scanned block in which each attempt was seen, to check nodes that call the attempt dead.

The scan writes in the transaction that records the block. A row counts as long as the scanned chain has that block, so
that a reorg needs no deletion.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from models.db.base import column, execute, rows_as
from models.db.table import Big, Table
from models.deposits import cursors


class Seen(Table, table="attempts_seen s"):
    """A spend's attempt that the scan saw in a block."""

    network: str
    txid: str
    height: Big
    block_hash: str


def note(network: str, txids: Collection[str], *, height: int, block_hash: str) -> int:
    """Record the block of the transactions that are attempts; return how many rows are new or changed.

    Call inside the transaction that records the block.
    """
    if not txids:
        return 0
    return execute(
        "INSERT INTO attempts_seen AS s (network, txid, height, block_hash)"
        " SELECT a.network, a.txid, %(height)s, %(block_hash)s FROM spend_attempts a"
        " WHERE a.network = %(network)s AND a.txid = ANY(%(txids)s) ORDER BY a.txid"
        " ON CONFLICT (network, txid) DO UPDATE SET height = EXCLUDED.height, block_hash = EXCLUDED.block_hash"
        " WHERE (s.height, s.block_hash) <> (EXCLUDED.height, EXCLUDED.block_hash)",
        {"network": network, "txids": sorted(txids), "height": height, "block_hash": block_hash},
    )


def lacked(network: str, *, height: int, block_hash: str, shown: Collection[str]) -> list[str]:
    """Return the attempts that were noted in a block and that another reading of it lacks.

    Of spends that are under way alone: the death of one that has ended is never asked about. shown: all transactions of
    that other reading.
    """
    return column(
        "SELECT n.txid FROM spends s JOIN spend_attempts a ON a.spend_id = s.id"
        " JOIN attempts_seen n ON (n.network, n.txid) = (a.network, a.txid)"
        " WHERE s.network = %(network)s AND s.settled_at IS NULL"
        " AND (n.height, n.block_hash) = (%(height)s, %(block_hash)s) AND n.txid <> ALL(%(shown)s) ORDER BY 1",
        {"network": network, "height": height, "block_hash": block_hash, "shown": list(shown)},
    )


def overdue(network: str, *, limit: int) -> list[Seen]:
    """Return the notes of attempts whose window the scan has passed and that no node has shown as included."""
    return rows_as(
        Seen,
        "SELECT n.network, n.txid, n.height, n.block_hash FROM spends s JOIN spend_attempts a ON a.spend_id = s.id"
        " JOIN attempts_seen n ON (n.network, n.txid) = (a.network, a.txid)"
        " JOIN chain_cursors c ON c.network = s.network"
        " WHERE s.network = %s AND s.settled_at IS NULL AND s.mined_txid IS NULL"
        f" AND {cursors.window_is_over('a')} ORDER BY n.height, n.txid LIMIT %s",
        (network, limit),
    )


def take_back(network: str, txids: Collection[str], *, height: int, block_hash: str) -> list[str]:
    """Take back the notes of these attempts in a block; return the transactions that were noted there."""
    return column(
        "DELETE FROM attempts_seen WHERE network = %s AND txid = ANY(%s) AND (height, block_hash) = (%s, %s)"
        " RETURNING txid",
        (network, list(txids), height, block_hash),
    )


def block_of(spend_id: UUID) -> Seen | None:
    """Return the scanned block that includes an attempt of a spend; None if there is none.

    An attempt that the database had lost was seen in the block where the scan noted it as unexplained.
    """
    blocks = rows_as(
        Seen,
        "SELECT a.network, a.txid, s.height, s.block_hash FROM spend_attempts a CROSS JOIN LATERAL ("
        "   SELECT height, block_hash FROM attempts_seen WHERE (network, txid) = (a.network, a.txid) UNION"
        "   SELECT block_height, block_hash FROM unexplained_departures WHERE (network, txid) = (a.network, a.txid)"
        "     AND status <> 'unread'"
        " ) s WHERE a.spend_id = %s AND s.height IS NOT NULL ORDER BY s.height DESC",
        (spend_id,),
    )
    return next((each for each in blocks if _is_scanned(each)), None)


def _is_scanned(seen: Seen) -> bool:
    return cursors.stands_on(seen.network, height=seen.height, block_hash=seen.block_hash)

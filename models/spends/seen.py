"""Notes in which scanned block each attempt of ours was seen, against which its death as nodes tell it is held.

The scan notes in the transaction that records the block. A note counts as long as the scan stands on that block, so
that nothing has to be taken back after a reorg.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from models.db.base import execute, rows_as
from models.db.table import Big, Table
from models.deposits import cursors


class Seen(Table, table="attempts_seen s"):
    """An attempt of a spend in a block."""

    network: str
    txid: str
    height: Big
    block_hash: str


def note(network: str, txids: Collection[str], *, height: int, block_hash: str) -> int:
    """Note the block of those transactions that are attempts; return how many that was news of.

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


def block_of(spend_id: UUID) -> Seen | None:
    """Return where the scan saw an attempt of a spend, None if it is in no block that the scan stands on.

    An attempt that the database had forgotten was seen where the scan noted it as unknown.
    """
    found = rows_as(
        Seen,
        "SELECT a.network, a.txid, s.height, s.block_hash FROM spend_attempts a CROSS JOIN LATERAL ("
        "   SELECT height, block_hash FROM attempts_seen WHERE (network, txid) = (a.network, a.txid) UNION"
        "   SELECT block_height, block_hash FROM unknown_spends WHERE (network, txid) = (a.network, a.txid)"
        " ) s WHERE a.spend_id = %s AND s.height IS NOT NULL ORDER BY s.height DESC",
        (spend_id,),
    )
    return next((each for each in found if _is_scanned(each)), None)


def _is_scanned(seen: Seen) -> bool:
    return cursors.stands_on(seen.network, height=seen.height, block_hash=seen.block_hash)

"""Keeps unexplained departures whose movements no node has shown yet, in families where no slot shows them.

Noted by the scan. The signer commits bytes before it sends them, so each of our transactions in a block has its row. If
one has none, another party has our keys or the database has lost its last commits. Signing stops until a row knows it.
Recovery then reads its movements, and it is settled as any unexplained departure (models.spends.unexplained).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from core.catalogue.families import Claim
from core.ids import uuid7
from models.db.after_commit import Bell, ring
from models.db.base import touched
from models.spends import signing_stops, unexplained
from models.spends.unexplained import UnexplainedRow

log = structlog.get_logger()

REASON: Final = "unexplained departures took from our addresses"


def note(network: str, claim: Claim, takers: Mapping[str, str], *, height: int, block_hash: str) -> int:
    """Record a block's transactions that no row knows, and stop the signing; return how many.

    takers: the sender of each transaction that took from us, '' if the chain names none. Call inside the transaction
    that records the block; recovery is notified after its commit.
    """
    without_row = sorted(unexplained.without_row(network, takers))
    noted = UnexplainedRow.write_all(
        [
            UnexplainedRow(
                id=uuid7(), network=network, txid=txid, claim=claim, sender=takers[txid], block_height=height,
                block_hash=block_hash, status="unread",
            )
            for txid in without_row
        ],
        "ON CONFLICT (network, txid) DO UPDATE SET block_height = EXCLUDED.block_height,"
        f" block_hash = EXCLUDED.block_hash, status = 'unread', {unexplained.BEGUN_AGAIN}"
        f" WHERE d.block_height IS NULL AND (d.{unexplained.IS_OPEN} OR d.status = 'dismissed')",
    )  # fmt: skip
    if noted:
        log.critical("departure.unread", network=network, txids=without_row, height=height)
        signing_stops.stop(network, reason=REASON)
        ring(Bell.SEEK_DEPARTURES, network)
    return noted


def dismiss(claimed: UnexplainedRow, *, by: str, reason: str) -> bool:
    """Dismiss a departure that is not in the block noted for it; False if it was noted again or read meanwhile.

    If the scan finds it in any block, the signing stops again. One that was read in an earlier block is only taken out
    of the noted one: its bytes prove that it exists.
    """
    if claimed.raw:
        return touched(
            "UPDATE unexplained_departures SET block_height = NULL, block_hash = NULL, status = 'unexplained'"
            " WHERE (id, block_hash, status) = (%s, %s, 'unread')",
            (claimed.id, claimed.block_hash),
        )
    return touched(
        "UPDATE unexplained_departures SET block_height = NULL, block_hash = NULL, status = 'dismissed',"
        " settled_by = %s, reason = %s, settled_at = app_now() WHERE (id, block_hash, status) = (%s, %s, 'unread')",
        (by, reason, claimed.id, claimed.block_hash),
    )


def waiting(network: str, *, limit: int) -> list[UnexplainedRow]:
    """Return the departures in a block whose movements are not read yet."""
    return UnexplainedRow.read(
        f"d.network = %s AND {unexplained.WAITS_UNREAD} ORDER BY d.block_height, d.txid LIMIT %s", (network, limit)
    )

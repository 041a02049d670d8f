"""Keeps what chains take from our addresses without a spend: rent, and gas for receiving.

The scan records a block's charges in the transaction of the block, and a reorg deletes them with it. They count at once
against the chain's balances, and in the ledger, as gas, once they are as deep as a top-up has to be. One that only one
of two readings shows is doubted, and counts nowhere until providers agree on it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal

from core.catalogue.catalogue import Catalogue, Network
from core.ids import uuid7
from models.db.base import column, execute, is_true, rows, touched, transaction
from models.db.table import BY_DATABASE, Big, Numeric, Table
from models.deposits import witnesses
from models.ledger import maturity
from models.spends import bookings

Status = Literal["pending", "booked", "doubted", "denied"]


_ASKED: Final = "(network, txid, address) = (%s, %s, %s) AND status = 'doubted'"


class ChargeRow(Table, table="charges c"):
    """A charge of one address by one transaction. Units are the network's own; negative where the address gained."""

    network: str
    txid: str
    address: str
    currency: str
    decimals: int
    units: Numeric
    block_height: Big
    block_hash: str
    status: Status = BY_DATABASE
    # In the ledger's units.
    booked_units: Numeric = BY_DATABASE
    agreed_at: datetime | None = BY_DATABASE
    attempts: int = BY_DATABASE
    next_attempt_at: datetime = BY_DATABASE
    problem: str = BY_DATABASE


def note(charged: Collection[ChargeRow], *, is_doubted: bool = False) -> int:
    """Record a block's charges, each once; return how many were new. Call in the transaction that records the block.

    is_doubted: an earlier reading of the block did not show the new ones.
    """
    status: Status = "doubted" if is_doubted else "pending"
    return ChargeRow.write_all([row.but(status=status) for row in charged], "ON CONFLICT DO NOTHING") if charged else 0


def is_any_in(network: str, *, height: int) -> bool:
    """Return whether a block of this height has charges by our rows."""
    return is_true("SELECT 1 FROM charges WHERE network = %s AND block_height = %s LIMIT 1", (network, height))


def doubt(network: str, *, height: int, block_hash: str, shown: Collection[ChargeRow]) -> list[str]:
    """Doubt the charges of a block that a second reading does not show alike; return all such transactions.

    Booked ones stay: it is too late for them. So do those on which providers agreed.
    """
    alike = [[*each] for each in zip(*((row.txid, row.address, row.units) for row in shown), strict=True)] or [[]] * 3
    unlike = (
        "c.network = %s AND (c.block_height, c.block_hash) = (%s, %s) AND c.agreed_at IS NULL"
        " AND NOT EXISTS (SELECT FROM unnest(%s::text[], %s::text[], %s::numeric[]) AS shown (txid, address, units)"
        " WHERE (shown.txid, shown.address, shown.units) = (c.txid, c.address, c.units))"
    )
    given = (network, height, block_hash, *alike)
    txids: list[str] = column(
        f"SELECT c.txid FROM charges c WHERE {unlike} AND c.status IN ('pending', 'booked')", given
    )
    execute(f"UPDATE charges c SET status = 'doubted' WHERE {unlike} AND c.status = 'pending'", given)
    return txids


def due(network: str, *, limit: int) -> list[ChargeRow]:
    """Return doubted charges whose witnesses are to be asked now, those that waited longest first."""
    return ChargeRow.read(
        "c.network = %s AND c.status = 'doubted' AND c.next_attempt_at <= app_now()"
        " ORDER BY c.next_attempt_at, c.txid, c.address LIMIT %s",
        (network, limit),
    )


def agree(asked: ChargeRow) -> bool:
    """Let a doubted charge count again, as providers show it in the same block; False if it was decided."""
    return _decide(asked, "pending")


def deny(asked: ChargeRow) -> bool:
    """Leave a doubted charge out for good, as providers lack it in its block; False if it was decided."""
    return _decide(asked, "denied")


def _decide(asked: ChargeRow, status: Status) -> bool:
    return touched(
        "UPDATE charges SET status = %s, agreed_at = app_now(), attempts = attempts + 1, problem = ''"
        f" WHERE {_ASKED} AND block_hash = %s",
        (status, *_key(asked), asked.block_hash),
    )


def put_off(asked: ChargeRow, problem: str) -> None:
    """Ask about a doubted charge again later, each time after twice as long."""
    execute(f"UPDATE charges SET {witnesses.PUT_OFF} WHERE {_ASKED}", (problem, *_key(asked)))


def _key(asked: ChargeRow) -> tuple[str, str, str]:
    return asked.network, asked.txid, asked.address


def take_back(network: Network) -> None:
    """Delete the charges above the cursor, and reverse their bookings, in the transaction that moved the cursor."""
    booked = column(
        "DELETE FROM charges c USING chain_cursors k WHERE c.network = %s AND k.network = c.network"
        " AND c.block_height > k.height RETURNING c.booked_units",
        (network.code,),
    )
    bookings.book_charges(network, f"charges:{uuid7()}:reverse", -int(sum(booked)))


def book_matured(catalogue: Catalogue, network: Network, *, limit: int, after_rereading: bool = False) -> int:
    """Book the charges that are at the maturity depth and that the chain calls final, in one sum; return how many.

    after_rereading: leave out those whose block was not read a second time yet, since that may doubt them.
    """
    with transaction():
        due = rows(
            "SELECT t.txid, t.address, t.units FROM charges t JOIN chain_cursors c ON c.network = t.network"
            f" WHERE t.network = %(network)s AND t.status = 'pending' AND {maturity.condition('t')}"
            " AND (NOT %(after_rereading)s OR t.block_height <= COALESCE(c.reread_height, -1))"
            " ORDER BY t.block_height, t.txid, t.address LIMIT %(limit)s FOR UPDATE OF t",
            maturity.bounds(network) | {"network": network.code, "after_rereading": after_rereading, "limit": limit},
        )
        if not due:
            return 0
        units = [bookings.gas_units(catalogue, network.code, int(each)) for _, _, each in due]
        execute(
            "UPDATE charges c SET status = 'booked', booked_units = due.units FROM"
            " unnest(%s::text[], %s::text[], %s::numeric[]) AS due (txid, address, units)"
            " WHERE (c.network, c.txid, c.address) = (%s, due.txid, due.address)",
            ([txid for txid, _, _ in due], [address for _, address, _ in due], units, network.code),
        )
        bookings.book_charges(network, f"charges:{uuid7()}", sum(units))
    return len(due)

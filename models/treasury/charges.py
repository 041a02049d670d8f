"""Keeps what chains take from our addresses without a spend: rent, and gas for receiving.

The scan records a block's charges in the transaction of the block, and a reorg deletes them with it. They count at once
against the chain's balances, and in the ledger, as gas, once they are as deep as a top-up has to be.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from core.catalogue.catalogue import Catalogue, Network
from core.ids import uuid7
from models.db.base import column, execute, is_true, rows, transaction
from models.db.table import BY_DATABASE, Big, Numeric, Table
from models.ledger import maturity
from models.spends import bookings

Status = Literal["pending", "booked", "doubted"]


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


def note(charged: Collection[ChargeRow]) -> int:
    """Record a block's charges, each once; return how many were new. Call in the transaction that records the block."""
    return ChargeRow.write_all(list(charged), "ON CONFLICT DO NOTHING") if charged else 0


def is_any_in(network: str, *, height: int) -> bool:
    """Return whether a block of this height has charges by our rows."""
    return is_true("SELECT 1 FROM charges WHERE network = %s AND block_height = %s LIMIT 1", (network, height))


def doubt(network: str, *, height: int, block_hash: str, shown: Collection[ChargeRow]) -> list[str]:
    """Leave out the charges of a block that a second reading does not show alike; return all such transactions.

    Booked ones stay: it is too late for them.
    """
    alike = [[*each] for each in zip(*((row.txid, row.address, row.units) for row in shown), strict=True)] or [[]] * 3
    unlike = (
        "c.network = %s AND (c.block_height, c.block_hash) = (%s, %s) AND NOT EXISTS (SELECT FROM"
        " unnest(%s::text[], %s::text[], %s::numeric[]) AS shown (txid, address, units)"
        " WHERE (shown.txid, shown.address, shown.units) = (c.txid, c.address, c.units))"
    )
    given = (network, height, block_hash, *alike)
    txids: list[str] = column(f"SELECT c.txid FROM charges c WHERE {unlike} AND c.status <> 'doubted'", given)
    execute(f"UPDATE charges c SET status = 'doubted' WHERE {unlike} AND c.status = 'pending'", given)
    return txids


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

"""Keeps which coins each spend claims: given to it by the signer, freed when it is dead or did without.

Whoever locks several coins locks them in one order.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from models.db.base import column, execute, is_true, one, rows, rows_as
from models.spends.coins import DEPTH, IS_FREE, NAMED, Outpoint, lock, split


class HeldCoin(NamedTuple):
    """A coin that a spend claims, whose key spends it, and which block's transaction did."""

    txid: str
    vout: int
    units: int
    address: str
    key_ordinal: int | None
    depth: int
    # Of the spend's attempts the first that claims it.
    held_number: int
    spent_by_txid: str | None
    spent_height: int | None


def hold(spend_id: UUID, outpoints: Collection[Outpoint], *, number: int = 0) -> bool:
    """Give coins to a spend as its claim; False, and none is given, unless all of them are free.

    number: of the attempt that claims them, which claims all that those before do. Call inside the transaction that
    writes the spend and commits its bytes, after the spend. Of two who want the same coin the second waits for the
    first, and is refused; he drafts anew.
    """
    wanted = set(outpoints)
    network = one("SELECT network FROM spends WHERE id = %s", (spend_id,))
    if network is None or not wanted:
        return False
    locked = rows(
        f"SELECT {IS_FREE} FROM coins k WHERE k.network = %s AND {NAMED} ORDER BY k.txid, k.vout FOR UPDATE OF k",
        (*network, *split(wanted)),
    )
    if len(locked) < len(wanted) or not all(is_free for (is_free,) in locked):
        return False
    execute(
        f"UPDATE coins k SET held_by = %s, held_number = %s WHERE k.network = %s AND {NAMED}",
        (spend_id, number, *network, *split(wanted)),
    )
    return True


def release(spend_id: UUID) -> int:
    """Free the coins of a spend that is dead; return how many it held. Call in the transaction that ends the spend."""
    return execute("UPDATE coins SET held_by = NULL, held_number = 0 WHERE held_by = %s", (spend_id,))


def release_unspent(spend_id: UUID) -> int:
    """Free what a settled spend held for dearer attempts, none of which was included; return how many coins.

    Call in the transaction that settles the spend, whose block lies deep in what was scanned.
    """
    return execute(
        "UPDATE coins SET held_by = NULL, held_number = 0 WHERE held_by = %s AND spent_by_txid IS NULL", (spend_id,)
    )


def held(spend_id: UUID, family: str) -> list[HeldCoin]:
    """Return the coins that a spend holds, or held when it spent them."""
    return rows_as(
        HeldCoin,
        "SELECT k.txid, k.vout, k.units, k.address, p.ordinal AS key_ordinal,"
        f" COALESCE({DEPTH}, 0) AS depth, k.held_number, k.spent_by_txid, k.spent_height"
        " FROM coins k LEFT JOIN chain_cursors c ON c.network = k.network"
        " LEFT JOIN pool_addresses p ON p.family = %s AND p.address = k.address"
        " WHERE k.held_by = %s ORDER BY k.txid, k.vout",
        (family, spend_id),
    )


def holders(network: str, outpoints: Collection[Outpoint]) -> list[UUID]:
    """Return the spends that hold any of these coins."""
    return column(
        f"SELECT DISTINCT k.held_by FROM coins k WHERE k.network = %s AND {NAMED} AND k.held_by IS NOT NULL",
        (network, *split(outpoints)),
    )


def needing(network: str, outpoints: Collection[Outpoint], *, depth: int) -> list[UUID]:
    """Return the spends that cannot do without one of these coins.

    What a later attempt alone claims, its spend does without once another's transaction that spends it lies so deep.
    """
    return column(
        "SELECT DISTINCT k.held_by FROM coins k JOIN chain_cursors c ON c.network = k.network"
        f" WHERE k.network = %s AND {NAMED} AND k.held_by IS NOT NULL"
        " AND (k.held_number = 0 OR k.spent_height IS NULL OR c.height - k.spent_height + 1 < %s)",
        (network, *split(outpoints), depth),
    )


def are_all_unspent(spend_id: UUID, number: int) -> bool:
    """Return whether blocks hold all coins that an attempt of a spend claims, and none spends one of them."""
    return is_true(
        "SELECT bool_and(spent_by_txid IS NULL AND created_height IS NOT NULL) FROM coins"
        " WHERE held_by = %s AND held_number <= %s",
        (spend_id, number),
    )


def are_spent_otherwise(network: str, outpoints: Collection[Outpoint], txid: str) -> bool:
    """Return whether another transaction spends any of these coins in a block."""
    return is_true(
        f"SELECT 1 FROM coins k WHERE k.network = %s AND {NAMED} AND k.spent_by_txid <> %s LIMIT 1",
        (network, *split(outpoints), txid),
    )


def take_over(spend_id: UUID, network: str, outpoints: Collection[Outpoint], *, number: int = 0) -> int:
    """Give a spend the coins that its transaction has in a block already, or had; return how many it did not hold.

    For what was signed before the database lost it, and what a stranger has of the coins that another spend can do
    without. number: of the attempt that it is. Call inside the transaction that writes the spend.
    """
    lock(network, outpoints)
    return execute(
        f"UPDATE coins k SET held_by = %s, held_number = %s WHERE k.network = %s AND {NAMED}"
        " AND (k.held_by IS NULL OR k.held_by <> %s AND k.held_number > 0)",
        (spend_id, number, network, *split(outpoints), spend_id),
    )


def taken_from(spend_id: UUID) -> list[str]:
    """Return which transactions in blocks spend coins that a spend holds, and are none of its attempts."""
    return column(
        "SELECT DISTINCT k.spent_by_txid FROM coins k WHERE k.held_by = %s AND k.spent_by_txid IS NOT NULL"
        " AND NOT EXISTS (SELECT FROM spend_attempts a"
        "   WHERE (a.spend_id, a.network, a.txid) = (k.held_by, k.network, k.spent_by_txid))",
        (spend_id,),
    )

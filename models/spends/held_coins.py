"""Keeps the coins that each spend claims: the signer assigns them; they are freed if the spend is dead or did without.

Several coins are locked in order of txid and vout.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from models.db.base import column, execute, is_true, one, rows, rows_as
from models.spends.coins import DEPTH, IS_FREE, NAMED, Outpoint, lock, split


class HeldCoin(NamedTuple):
    """A coin that a spend claims, with the ordinal of its key and the transaction in a block that spent it."""

    txid: str
    vout: int
    units: int
    address: str
    key_ordinal: int | None
    depth: int
    # The first of the spend's attempts that claims it.
    held_number: int
    spent_by_txid: str | None
    spent_height: int | None


def hold(spend_id: UUID, outpoints: Collection[Outpoint], *, number: int = 0) -> bool:
    """Assign coins to a spend as its claim; False, without any change, unless all of them are free.

    number: of the attempt that claims them in addition to the coins of earlier attempts. Call inside the transaction
    that writes the spend and commits its bytes, after the spend is written. If two callers want the same coin, the
    second waits for the first, gets False, and drafts again.
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
    """Free the coins that a settled spend held for higher offers, none of which was included; return how many.

    Call in the transaction that settles the spend, when its block is deep in the scanned chain.
    """
    return execute(
        "UPDATE coins SET held_by = NULL, held_number = 0 WHERE held_by = %s AND spent_by_txid IS NULL", (spend_id,)
    )


def of_spend(spend_id: UUID, family: str) -> list[HeldCoin]:
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
    """Return the spends that need any of these coins.

    A coin claimed only by a later attempt is no longer needed once a block at this depth spends it otherwise.
    """
    return column(
        "SELECT DISTINCT k.held_by FROM coins k JOIN chain_cursors c ON c.network = k.network"
        f" WHERE k.network = %s AND {NAMED} AND k.held_by IS NOT NULL"
        " AND (k.held_number = 0 OR k.spent_height IS NULL OR c.height - k.spent_height + 1 < %s)",
        (network, *split(outpoints), depth),
    )


def are_all_unspent(spend_id: UUID, number: int) -> bool:
    """Return True if all coins that a spend's attempt claims are in blocks and unspent there."""
    return is_true(
        "SELECT bool_and(spent_by_txid IS NULL AND created_height IS NOT NULL) FROM coins"
        " WHERE held_by = %s AND held_number <= %s",
        (spend_id, number),
    )


def are_spent_otherwise(network: str, outpoints: Collection[Outpoint], txid: str) -> bool:
    """Return True if another transaction in a block spends any of these coins."""
    return is_true(
        f"SELECT 1 FROM coins k WHERE k.network = %s AND {NAMED} AND k.spent_by_txid <> %s LIMIT 1",
        (network, *split(outpoints), txid),
    )


def take_over(spend_id: UUID, network: str, outpoints: Collection[Outpoint], *, number: int = 0) -> int:
    """Assign to a spend the coins that its transaction spends, or spent before a reorg; return how many were new to it.

    For transactions that the database lost, and for a stranger's that took coins which another spend can do without.
    number: of the attempt that the transaction becomes. Call inside the transaction that writes the spend.
    """
    lock(network, outpoints)
    return execute(
        f"UPDATE coins k SET held_by = %s, held_number = %s WHERE k.network = %s AND {NAMED}"
        " AND (k.held_by IS NULL OR k.held_by <> %s AND k.held_number > 0)",
        (spend_id, number, network, *split(outpoints), spend_id),
    )


def taken_from(spend_id: UUID) -> list[str]:
    """Return the transactions in blocks, other than its attempts, that spend a spend's coins."""
    return column(
        "SELECT DISTINCT k.spent_by_txid FROM coins k WHERE k.held_by = %s AND k.spent_by_txid IS NOT NULL"
        " AND NOT EXISTS (SELECT FROM spend_attempts a"
        "   WHERE (a.spend_id, a.network, a.txid) = (k.held_by, k.network, k.spent_by_txid))",
        (spend_id,),
    )

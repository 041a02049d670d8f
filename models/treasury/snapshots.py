"""Keeps the balances of our places at a block until the scan has reached it. Called by actors.treasury.reconcile.

Some nodes report only the balances of their newest block, while our rows cover only scanned blocks. So the two are
compared once the scan has reached that block. If a reorg takes the block first, the snapshot proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from models.db.base import execute, one_as, transaction
from models.db.clock import FUTURE_MAX_S
from models.deposits.cursors import Cursor
from models.treasury.rows import BalanceSnapshot, Place

# A block that the scan has not reached for so long is forgotten: a node may have made it up.
KEPT_S: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One place's balance of a coin, in the network's token units."""

    place: Place
    currency: str
    address: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balances:
    """The balances of our places after one block, with the number of providers that reported them alike."""

    height: int
    block_hash: str
    witnesses: int
    holdings: tuple[Holding, ...]
    # In families with coins: the scanned block, by height and hash, whose coins were asked for.
    asked: tuple[int, str] | None = None


def read(network: str) -> Balances | None:
    """Return what waits to be compared, None if nothing does."""
    snapshots = BalanceSnapshot.read(
        "network = %s AND taken_at BETWEEN app_now() - make_interval(secs => %s)"
        " AND app_now() + make_interval(secs => %s) ORDER BY place, currency, address",
        (network, KEPT_S, FUTURE_MAX_S),
    )
    if not snapshots:
        return None
    holdings = (
        Holding(place=row.place, currency=row.currency, address=row.address, units=row.units) for row in snapshots
    )
    first = snapshots[0]
    asked = None if first.asked_height is None else (first.asked_height, first.asked_hash or "")
    return Balances(
        height=first.height,
        block_hash=first.block_hash,
        witnesses=first.witnesses,
        holdings=tuple(holdings),
        asked=asked,
    )


def keep(network: str, balances: Balances) -> None:
    """Keep balances in place of those that waited until now."""
    asked_height, asked_hash = balances.asked or (None, None)
    with transaction():
        drop(network)
        BalanceSnapshot.write_all(
            [
                BalanceSnapshot(
                    network=network, place=each.place, currency=each.currency, address=each.address, units=each.units,
                    height=balances.height, block_hash=balances.block_hash, witnesses=balances.witnesses,
                    asked_height=asked_height, asked_hash=asked_hash,
                )
                for each in balances.holdings
            ]
        )  # fmt: skip


def drop(network: str) -> None:
    """Forget what waited to be compared."""
    execute("DELETE FROM balance_snapshots WHERE network = %s", (network,))


def scanned_block(network: str, balances: Balances) -> Cursor | None:
    """Return the block of balances as the scan knows it, None if it has not come there or found another one."""
    return one_as(
        Cursor,
        "SELECT height, hash, block_time FROM chain_blocks WHERE network = %s AND height = %s AND hash = %s",
        (network, balances.height, balances.block_hash),
    )

"""Computes the cold addresses' holdings by the books, for money that returns from there or is carried on.

Spends bring it there, and it stays in custody all the time; an operator brought any excess that returns. Read by
models.treasury.topups, moves, liquidity and reconciliation.
"""

from __future__ import annotations

from typing import Final

from core.money import rescale_down
from models.db import locks
from models.db.base import is_true, rows, value
from models.db.locks import LockSeed
from models.spends.unexplained import IS_OPEN

# What spends brought to the cold address, by their movements m.
COOLED: Final = (
    "spends s JOIN spend_outputs o ON o.spend_id = s.id"
    " JOIN spend_movements m ON m.spend_id = s.id AND m.address = o.recipient AND m.currency = s.currency"
    " AND s.purpose = 'cold'"
)
# What a top-up t that came from the cold address took from its books: all of it, until that is decided.
RETURNED: Final = "(CASE WHEN t.status = 'pending' THEN t.units ELSE t.known_units END)"
_GONE: Final = (
    "SELECT COALESCE(sum(units), 0) FROM ("
    f" SELECT {RETURNED} AS units FROM treasury_topups t WHERE t.network = %(network)s"
    "    AND t.currency = %(currency)s AND t.origin = 'cold' AND t.status = ANY(%(statuses)s)"
    "  UNION ALL SELECT units FROM treasury_moves WHERE from_network = %(network)s AND currency = %(currency)s"
    " ) g"
)


def wait_turn(network: str) -> None:
    """Make others that take from a network's cold books wait until the caller's transaction ends."""
    locks.wait_turn(network, seed=LockSeed.COLD_BOOKS)


def units(network: str, currency: str, *, with_pending: bool) -> int:
    """Return what the cold addresses of a network hold of a coin by the books, in the ledger's units; at least 0.

    with_pending: less what has come back and is not booked yet. Raises LookupError for a coin without a scale.
    """
    statuses = ["booked", "pending"] if with_pending else ["booked"]
    gone = value(_GONE, {"network": network, "currency": currency, "statuses": statuses})
    return max(0, _brought(network, currency) - int(gone))


def _brought(network: str, currency: str) -> int:
    """Return the units that spends brought there. Raises LookupError if the ledger has no scale of the coin yet."""
    sums = rows(
        f"SELECT m.decimals, sum(m.units) FROM {COOLED} WHERE s.network = %s AND m.currency = %s GROUP BY m.decimals",
        (network, currency),
    )
    scale = value("SELECT scale FROM ledger_scales WHERE currency = %s", (currency,))
    if sums and scale is None:
        raise LookupError(f"the ledger has no scale of {currency}")
    return sum(rescale_down(int(units), decimals, scale) for decimals, units in sums)


def is_open(network: str, currency: str) -> bool:
    """Return whether a transaction may have brought coin to the cold address without its block being noted."""
    return is_true(
        "SELECT 1 FROM spends WHERE network = %s AND currency = %s AND purpose = 'cold' AND settled_at IS NULL"
        " AND state <> 'dead' AND effect IS NULL"
        f" UNION ALL SELECT 1 FROM unexplained_departures WHERE network = %s AND currency = %s AND {IS_OPEN} LIMIT 1",
        (network, currency) * 2,
    )

"""Lists payments to pool addresses without an owner, and makes them the gateway's own. Called by cli.treasury.unowned.

A buyer may have paid an invoice that the database lost, so only an operator can find out whose the money is. Until then
it is in custody and in an account of its own.
"""

from __future__ import annotations

from models.db.base import rows, transaction
from models.ledger import ledger
from models.ledger.ledger import EQUITY, GATEWAY, UNOWNED, Account, Transfer
from models.treasury.rows import Topup


def listing(network: str | None = None, *, limit: int, txid: str | None = None) -> list[Topup]:
    """Return payments to addresses without an owner, oldest first, except those that an operator has kept."""
    return Topup.read(
        "origin = 'unowned' AND status <> 'reversed' AND network = COALESCE(%s, network)"
        " AND txid = COALESCE(%s, txid) ORDER BY id LIMIT %s",
        (network, txid, limit),
    )


def units(network: str) -> dict[str, int]:
    """Return the amounts at addresses without an owner, by coin, in the ledger's units."""
    found = rows(
        "SELECT currency, sum(units) FROM treasury_topups WHERE network = %s AND origin = 'unowned'"
        " AND status <> 'reversed' GROUP BY currency",
        (network,),
    )
    return {currency: int(total) for currency, total in found}


def keep(found: Topup) -> bool:
    """Make a booked payment to an address without an owner the gateway's own, in a transaction of its own.

    False if it is not booked, if another call was first, or if a reorg took this life of it.
    """
    with transaction():
        kept = Topup.rows_of(
            "UPDATE treasury_topups t SET origin = 'adopted' WHERE id = %s AND round = %s AND units = %s"
            f" AND origin = 'unowned' AND status = 'booked' RETURNING {Topup.LIST}",
            (found.id, found.round, found.units),
        )
        for each in kept:
            nobodys, own = (Account(GATEWAY, kind, each.currency) for kind in (UNOWNED, EQUITY))
            ledger.post(f"topup:{each.id}:{each.round}:keep", [Transfer(nobodys, own, each.units)])
    return bool(kept)

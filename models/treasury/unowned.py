"""Lists payments to pool addresses without an owner, and makes them the gateway's own. Called by cli.treasury.unowned.

A buyer may have paid an invoice that the database lost, so only an operator can find out whose the money is. Until then
it is in custody and in an account of its own.
"""

from __future__ import annotations

from models.db.base import transaction
from models.db.query import total
from models.ledger import acts, ledger
from models.ledger.ledger import EQUITY, GATEWAY, UNOWNED, Account, Transfer
from models.treasury.rows import Topup


def listing(network: str | None = None, *, limit: int, txid: str | None = None) -> list[Topup]:
    """Return payments to addresses without an owner, oldest first, except those that an operator has kept."""
    topups = Topup.select().where(network is None or Topup.network == network, txid is None or Topup.txid == txid)
    return topups.where(Topup.origin == "unowned", Topup.status != "reversed").order_by(Topup.id).limit(limit).all()


def units(network: str) -> dict[str, int]:
    """Return the amounts at addresses without an owner, by coin, in the ledger's units."""
    by_coin = Topup.select(Topup.currency, total(Topup.units)).group_by(Topup.currency)
    unowned = by_coin.where(Topup.network == network, Topup.origin == "unowned", Topup.status != "reversed")
    return dict(unowned.all())


def keep(topup: Topup, *, by: str = "") -> bool:
    """Make a booked payment to an address without an owner the gateway's own, in a transaction of its own.

    False if it is not booked, if another call was first, or if a reorg took this life of it.
    """
    with transaction():
        kept = Topup.rows_of(
            "UPDATE treasury_topups t SET origin = 'adopted' WHERE id = %s AND round = %s AND units = %s"
            f" AND origin = 'unowned' AND status = 'booked' RETURNING {Topup.LIST}",
            (topup.id, topup.round, topup.units),
        )
        for each in kept:
            nobodys, own = (Account(GATEWAY, kind, each.currency) for kind in (UNOWNED, EQUITY))
            ledger.post(f"topup:{each.id}:{each.round}:keep", [Transfer(nobodys, own, each.units)])
            acts.record(
                "coin.kept", f"{each.network} {each.txid}", by=by, details=f"{each.units} units of {each.currency}"
            )
    return bool(kept)

"""Books what an operator carried from one network to another by hand. Called by `sluice treasury move`.

It left the cold address of the first, by a transaction that is not the gateway's, and comes to the hot wallet of the
second as a top-up, which is booked as the gateway's own. Without this the books would have it twice.
"""

from __future__ import annotations

from core.ids import uuid7
from models.db.base import execute, transaction
from models.db.query import total
from models.ledger import acts, ledger
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account, Transfer
from models.treasury import cold_books
from models.treasury.rows import Move


class MoveError(Exception):
    """The operator's input contradicts the books; says how, for him to read. Nothing was changed."""


def move(*, currency: str, units: int, from_network: str, to_network: str, txid: str, by: str) -> bool:
    """Book once what left a cold address for another network, in a transaction of its own.

    units: the ledger's. txid: the transaction by which it left, in the stored form. Returns whether it is new. Raises
    MoveError where the books have less in the cold address, or another sum for it.
    """
    with transaction():
        # One after the other: each is bounded by what those before it left.
        execute("LOCK TABLE treasury_moves IN SHARE ROW EXCLUSIVE MODE")
        known = Move.first("from_network = %s AND txid = %s AND currency = %s", (from_network, txid, currency))
        if known is not None:
            if (known.units, known.to_network) != (units, to_network):
                raise MoveError(f"{txid} is booked already, with another amount or to another network")
            return False
        cold_books.wait_turn(from_network)
        if units > cold_books.units(from_network, currency, with_pending=True):
            raise MoveError(f"by the books the cold address of {from_network} holds less {currency} than that")
        new = Move(
            id=uuid7(), currency=currency, from_network=from_network, to_network=to_network, txid=txid, units=units,
            moved_by=by,
        )  # fmt: skip
        new.write()
        equity, custody = Account(GATEWAY, EQUITY, currency), Account(GATEWAY, CUSTODY, currency, from_network)
        ledger.post(f"move:{new.id}", [Transfer(equity, custody, units)])
        acts.record("move.booked", f"{currency} {from_network} {txid}", by=by, details=f"{units} units to {to_network}")
    return True


def moved_units(network: str) -> dict[str, int]:
    """Return what was carried away from the cold addresses of a network, by coin, in the ledger's units."""
    moved = Move.select(Move.currency, total(Move.units)).where(Move.from_network == network)
    return dict(moved.group_by(Move.currency).all())

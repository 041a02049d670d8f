"""Books top-ups: money that came to the hot wallet other than by a sweep. Called by actors.scan.record.

It belongs to the gateway, whose operator brings in gas. Money that returns from the cold address was in the books all
the time, up to the amount they have there; the excess was brought by an operator. Money at a pool address without an
owner is held for its owner in an account of its own, which conversions do not sell. See models.treasury.cold_books and
unowned.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Network
from models.db.base import column, execute, is_true, repeat_on_deadlock, rows, transaction, value
from models.ledger import acts, ledger, maturity
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, UNOWNED, Account, Transfer
from models.treasury import cold_books
from models.treasury.rows import Topup
from models.treasury.topup_doubts import OPEN

BALANCE: Final = "balance:"
# An operator has decided whose it is. That remains after a reorg that brings the same coin back.
_IS_KEPT: Final = (
    "t.origin IN ('adopted', 'cold')"
    " AND (t.currency, t.units, t.address) = (EXCLUDED.currency, EXCLUDED.units, EXCLUDED.address)"
)


def balance_ordinal(currency: str, height: int) -> str:
    """Return the ordinal of a top-up without a known transaction; with the empty txid it is unique on its network."""
    return f"{BALANCE}{currency}:{height}"


def record(new: Topup) -> bool:
    """Write a top-up once; one that a reorg took and brought back begins a new life. Call inside a transaction.

    False if it is known, also as a deposit, or was recorded before from the balance; that row then gets its txid.
    """
    if new.txid and (_is_deposit(new) or _covers(new)):
        return False
    written = new.write(
        "ON CONFLICT (network, txid, ordinal) DO UPDATE SET status = 'pending', round = t.round + 1,"
        " currency = EXCLUDED.currency, units = EXCLUDED.units, sender = EXCLUDED.sender,"
        f" address = EXCLUDED.address, origin = CASE WHEN {_IS_KEPT} THEN t.origin ELSE EXCLUDED.origin END,"
        " depth_min = EXCLUDED.depth_min,"
        " block_height = EXCLUDED.block_height, block_hash = EXCLUDED.block_hash, known_units = 0, excess_units = 0,"
        # A top-up that a reorg brought back has to be witnessed again.
        " doubted_for = NULL, agreed_at = NULL, attempts = 0, problem = ''"
        " WHERE t.status = 'reversed'"
    )
    return written > 0


def _is_deposit(new: Topup) -> bool:
    """Return True if the same coin is booked to an invoice or a wallet, whose row may be gone by now."""
    return is_true(
        "SELECT 1 FROM deposits WHERE network = %s AND txid = %s AND ordinal = %s AND status <> 'reversed'",
        (new.network, new.txid, new.ordinal),
    )


def _covers(new: Topup) -> bool:
    if is_true(
        "SELECT 1 FROM treasury_topups WHERE network = %s AND txid = %s AND ordinal = %s",
        (new.network, new.txid, new.ordinal),
    ):
        return False
    later = rows(
        "SELECT id, units FROM treasury_topups WHERE network = %s AND currency = %s AND status <> 'reversed'"
        " AND txid = '' AND address = %s AND block_height >= %s ORDER BY block_height",
        (new.network, new.currency, new.address, new.block_height),
    )
    same = [topup_id for topup_id, units in later if units == new.units]
    if same:
        execute(
            "UPDATE treasury_topups SET txid = %s, ordinal = %s, sender = %s WHERE id = %s",
            (new.txid, new.ordinal, new.sender, same[0]),
        )
    return bool(later)


def is_adopted_after(network: str, currency: str, height: int) -> bool:
    """Return True if a surplus of the hot wallet was adopted at a later block."""
    return is_true(
        "SELECT 1 FROM treasury_topups WHERE network = %s AND currency = %s AND origin IN ('balance', 'adopted')"
        " AND status <> 'reversed' AND block_height > %s",
        (network, currency, height),
    )


def book_matured(network: Network, *, limit: int, after_rereading: bool = False) -> int:
    """Book the top-ups that are at the maturity depth and that the chain calls final; return how many.

    The rule is that of credits, see models.ledger.maturity. Top-ups that wait for a second opinion are left out, see
    models.treasury.topup_doubts. after_rereading: also leave out those whose block was not read a second time yet,
    since that may doubt them.
    """
    due = column(
        "SELECT t.id FROM treasury_topups t JOIN chain_cursors c ON c.network = t.network"
        f" WHERE t.network = %(network)s AND t.status = 'pending' AND {maturity.condition('t')}"
        " AND t.block_height <= c.height - t.depth_min + 1"
        " AND (NOT %(after_rereading)s OR t.block_height <= COALESCE(c.reread_height, -1))"
        # Those that wait for a second opinion come last, so that they keep no other from its turn.
        f" ORDER BY {OPEN}, t.block_height LIMIT %(limit)s",
        maturity.bounds(network) | {"network": network.code, "after_rereading": after_rereading, "limit": limit},
    )
    return sum(repeat_on_deadlock(_book, topup_id) for topup_id in due)


def _book(topup_id: UUID) -> bool:
    """Book a top-up once; False if it is booked, or while it waits for a second opinion.

    Money from the cold address also waits while the amount that was there is unknown.
    """
    with transaction():
        if not _may_be_split(topup_id):
            return False
        booked = Topup.rows_of(
            f"UPDATE treasury_topups t SET status = 'booked' WHERE id = %s AND status = 'pending' AND NOT {OPEN}"
            f" RETURNING {Topup.LIST}",
            (topup_id,),
        )
        for topup in booked:
            units = _split(topup) if topup.origin == "cold" else topup.units
            ledger.post(f"topup:{topup_id}:{topup.round}", [Transfer(*_accounts(topup), units)])
    return bool(booked)


def _may_be_split(topup_id: UUID) -> bool:
    """Return False for money from the cold address while the amount there is unknown; waits for its turn."""
    topup = Topup.first("id = %s", (topup_id,))
    if topup is None or topup.origin != "cold":
        return topup is not None
    cold_books.wait_turn(topup.network)
    return not cold_books.is_open(topup.network, topup.currency)


def _split(topup: Topup) -> int:
    """Split a top-up being booked by the amount in the cold books; return the units beyond it."""
    known = min(topup.units, cold_books.units(topup.network, topup.currency, with_pending=False))
    execute(
        "UPDATE treasury_topups SET known_units = %s, excess_units = %s WHERE id = %s",
        (known, topup.units - known, topup.id),
    )
    return topup.units - known


def find(network: str, txid: str) -> list[Topup]:
    """Return a transaction's top-ups that are booked as the gateway's own."""
    topups = Topup.select().where(Topup.network == network, Topup.txid == txid, Topup.txid != "")
    return topups.where(Topup.origin == "transfer", Topup.status == "booked").order_by(Topup.ordinal).all()


def take_as_returned(transfer: Topup, *, by: str = "") -> int | None:
    """Rebook a booked top-up as money returned from the cold address, in a transaction of its own.

    Returns the units that the books had there, which are then no longer the gateway's own; in the ledger's units. None
    while the amount there is unknown, if another call was first, or if a reorg took this life of it.
    """
    with transaction():
        cold_books.wait_turn(transfer.network)
        if cold_books.is_open(transfer.network, transfer.currency):
            return None
        taken = Topup.rows_of(
            "UPDATE treasury_topups t SET origin = 'cold' WHERE id = %s AND round = %s AND origin = 'transfer'"
            f" AND status = 'booked' RETURNING {Topup.LIST}",
            (transfer.id, transfer.round),
        )
        if not taken:
            return None
        [topup] = taken
        known = topup.units - _split(topup)
        custody, equity = _accounts(topup)
        ledger.post(f"topup:{topup.id}:{topup.round}:returned", [Transfer(equity, custody, known)])
        acts.record(
            "return.booked", f"{topup.network} {topup.txid}", by=by, details=f"{known} units of {topup.currency}"
        )
    return known


def reverse_orphans(network: str) -> int:
    """Reverse the top-ups in blocks above the cursor, after a reorg moved it back; return how many."""
    orphans = column(
        "SELECT t.id FROM treasury_topups t JOIN chain_cursors c ON c.network = t.network"
        " WHERE t.network = %s AND t.status <> 'reversed' AND t.block_height > c.height ORDER BY t.id",
        (network,),
    )
    return sum(repeat_on_deadlock(_reverse, network, topup_id) for topup_id in orphans)


def _reverse(network: str, topup_id: UUID) -> bool:
    with transaction():
        # Locked: another process may have reversed it since it was listed, and the scan read its next life.
        height = value("SELECT height FROM chain_cursors WHERE network = %s FOR SHARE", (network,))
        topup = Topup.first("id = %s AND status <> 'reversed' AND block_height > %s FOR UPDATE", (topup_id, height))
        if topup is not None:
            reverse(topup)
    return topup is not None


def lock_coin(network: str, txid: str, ordinal: str) -> Topup | None:
    """Lock and return a coin's top-up; None if it has none. Call inside a transaction.

    A top-up that an operator has kept counts even while it is reversed.
    """
    return Topup.first(
        "network = %s AND txid = %s AND ordinal = %s AND (status <> 'reversed' OR origin = 'adopted') FOR UPDATE",
        (network, txid, ordinal),
    )


def is_kept(topup: Topup) -> bool:
    """Return True if an operator has made a coin the gateway's own, in this life of it or an earlier one."""
    return is_true(
        "SELECT 1 FROM treasury_topups WHERE network = %s AND txid = %s AND ordinal = %s AND origin = 'adopted'",
        (topup.network, topup.txid, topup.ordinal),
    )


def reverse(topup: Topup) -> None:
    """End this life of a top-up and take its booking back. Call inside the transaction that locked it."""
    execute("UPDATE treasury_topups SET status = 'reversed' WHERE id = %s", (topup.id,))
    if topup.status == "booked":
        custody, owner = _accounts(topup)
        units = topup.excess_units if topup.origin == "cold" else topup.units
        ledger.post(f"topup:{topup.id}:{topup.round}:reverse", [Transfer(owner, custody, units)])


def _accounts(topup: Topup) -> tuple[Account, Account]:
    owner = UNOWNED if topup.origin == "unowned" else EQUITY
    return Account(GATEWAY, CUSTODY, topup.currency, topup.network), Account(GATEWAY, owner, topup.currency)

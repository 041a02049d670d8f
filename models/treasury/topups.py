"""Books money that came to the hot wallet other than by a sweep. Called by actors.scan.intake.

It belongs to the gateway, whose operator brings in gas. What comes back from the cold address was never gone, as far as
the books have it there; what is beyond that an operator has brought. What came to an address that was given out to
nobody is held for whom it belongs to, in an account of its own: conversions do not sell it. See
models.treasury.cold_books and unowned.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Network
from models.db.base import column, execute, is_true, repeat_on_deadlock, rows, transaction, value
from models.ledger import ledger, maturity
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, UNOWNED, Account, Transfer
from models.treasury import cold_books
from models.treasury.rows import Topup
from models.treasury.topup_doubts import OPEN

BALANCE: Final = "balance:"
# An operator has said whose it is, and a reorg does not change that while it brings the same coin back.
_IS_KEPT: Final = (
    "t.origin IN ('adopted', 'cold')"
    " AND (t.currency, t.units, t.address) = (EXCLUDED.currency, EXCLUDED.units, EXCLUDED.address)"
)


def balance_ordinal(currency: str, height: int) -> str:
    """Name a top-up that no transaction is known for; with the empty txid it is unique on its network."""
    return f"{BALANCE}{currency}:{height}"


def record(new: Topup) -> bool:
    """Write a top-up once; one that a reorg took and brought back begins a new life. Call inside a transaction.

    False where it is known, as a deposit too, or was counted before as a part of the balance, which then gets its name.
    """
    if new.txid and (_is_deposit(new) or _covers(new)):
        return False
    written = new.write(
        "ON CONFLICT (network, txid, ordinal) DO UPDATE SET status = 'pending', round = t.round + 1,"
        " currency = EXCLUDED.currency, units = EXCLUDED.units, sender = EXCLUDED.sender,"
        f" address = EXCLUDED.address, origin = CASE WHEN {_IS_KEPT} THEN t.origin ELSE EXCLUDED.origin END,"
        " depth_min = EXCLUDED.depth_min,"
        " block_height = EXCLUDED.block_height, block_hash = EXCLUDED.block_hash, known_units = 0, excess_units = 0,"
        # What a reorg brought back has to be witnessed anew.
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


def book_matured(network: Network, *, limit: int, after_rereading: bool = False) -> int:
    """Book the top-ups that the scan has buried to the maturity depth, and the chain calls final; return how many.

    As credits become available, see models.ledger.maturity. Those that wait for a second opinion are left; see
    models.treasury.topup_doubts. after_rereading: and those whose block was not read a second time yet, which may doubt
    them.
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
    """Book a top-up once; False if that is done, or while it waits for a second opinion.

    What came back from the cold address waits too while it is unknown what lay there.
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
    """Return False for what came back from the cold address while it is unknown what lay there; wait for one's turn."""
    found = Topup.first("id = %s", (topup_id,))
    if found is None or found.origin != "cold":
        return found is not None
    cold_books.wait_turn(found.network)
    return not cold_books.is_open(found.network, found.currency)


def _split(topup: Topup) -> int:
    """Divide a top-up that is just booked by what the cold books have; return what is beyond them."""
    known = min(topup.units, cold_books.units(topup.network, topup.currency, with_pending=False))
    execute(
        "UPDATE treasury_topups SET known_units = %s, excess_units = %s WHERE id = %s",
        (known, topup.units - known, topup.id),
    )
    return topup.units - known


def find(network: str, txid: str) -> list[Topup]:
    """Return what a transaction brought to the hot wallet that is booked as the gateway's own."""
    return Topup.read(
        "network = %s AND txid = %s AND txid <> '' AND origin = 'transfer' AND status = 'booked' ORDER BY ordinal",
        (network, txid),
    )


def take_as_returned(found: Topup) -> int | None:
    """Take a booked top-up for what came back from the cold address, in a transaction of its own.

    Returns what the books had there, in the ledger's units: it is the gateway's own no more. None while it is unknown
    what lay there, if another call was first, or if a reorg took this life of it.
    """
    with transaction():
        cold_books.wait_turn(found.network)
        if cold_books.is_open(found.network, found.currency):
            return None
        taken = Topup.rows_of(
            "UPDATE treasury_topups t SET origin = 'cold' WHERE id = %s AND round = %s AND origin = 'transfer'"
            f" AND status = 'booked' RETURNING {Topup.LIST}",
            (found.id, found.round),
        )
        if not taken:
            return None
        [topup] = taken
        known = topup.units - _split(topup)
        custody, equity = _accounts(topup)
        ledger.post(f"topup:{topup.id}:{topup.round}:returned", [Transfer(equity, custody, known)])
    return known


def reverse_orphans(network: str) -> int:
    """Take back the top-ups in blocks above the cursor, from where a reorg moved it; return how many."""
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
    """Return the top-up that a coin is booked as, and lock it; None if there is none. Call inside a transaction.

    One that an operator has kept counts also while it is reversed.
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

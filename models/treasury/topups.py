"""Money that came to the hot wallet other than by a sweep: rows, and how they are booked. Called by actors.scan.intake.

It belongs to the gateway, whose operator brings in gas; what comes back from the cold address was never gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from core.catalogue.catalogue import Network
from core.ids import uuid7
from models.db.base import execute, one, repeat_on_deadlock, rows, touched, transaction
from models.ledger import ledger
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account, Transfer
from models.treasury.topup_doubts import OPEN

Origin = Literal["transfer", "balance", "adopted", "cold"]

# What comes back from the cold address is in custody already.
BOOKED_ORIGINS: Final = ("transfer", "balance", "adopted")
BALANCE: Final = "balance:"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopup:
    """A transfer to the hot wallet. Units are the ledger's; where only the balance shows it, it has no txid."""

    network: str
    txid: str
    ordinal: str
    currency: str
    units: int
    sender: str
    origin: Origin
    block_height: int
    block_hash: str


def balance_ordinal(currency: str, height: int) -> str:
    """Name a top-up that no transaction is known for; with the empty txid it is unique on its network."""
    return f"{BALANCE}{currency}:{height}"


def record(new: NewTopup) -> bool:
    """Write a top-up once; one that a reorg took and brought back begins a new life. Call inside a transaction.

    False where it is known, or was counted before as a part of the balance, which then gets its name.
    """
    if new.txid and _covers(new):
        return False
    return touched(
        "INSERT INTO treasury_topups AS t (id, network, txid, ordinal, currency, units, sender, origin,"
        " block_height, block_hash) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (network, txid, ordinal) DO UPDATE SET status = 'pending', round = t.round + 1,"
        " currency = EXCLUDED.currency, units = EXCLUDED.units, sender = EXCLUDED.sender,"
        " origin = EXCLUDED.origin, block_height = EXCLUDED.block_height, block_hash = EXCLUDED.block_hash,"
        # What a reorg brought back has to be witnessed anew.
        " doubted_for = NULL, agreed_at = NULL, attempts = 0, problem = ''"
        " WHERE t.status = 'reversed'",
        (
            uuid7(),
            new.network,
            new.txid,
            new.ordinal,
            new.currency,
            new.units,
            new.sender,
            new.origin,
            new.block_height,
            new.block_hash,
        ),
    )


def _covers(new: NewTopup) -> bool:
    known = one(
        "SELECT 1 FROM treasury_topups WHERE network = %s AND txid = %s AND ordinal = %s",
        (new.network, new.txid, new.ordinal),
    )
    if known:
        return False
    later = rows(
        "SELECT id, units FROM treasury_topups WHERE network = %s AND currency = %s AND status <> 'reversed'"
        " AND txid = '' AND block_height >= %s ORDER BY block_height",
        (new.network, new.currency, new.block_height),
    )
    same = [topup_id for topup_id, units in later if units == new.units]
    if same:
        execute(
            "UPDATE treasury_topups SET txid = %s, ordinal = %s, sender = %s WHERE id = %s",
            (new.txid, new.ordinal, new.sender, same[0]),
        )
    return bool(later)


def book_matured(network: Network, *, limit: int, after_rereading: bool = False) -> int:
    """Book the top-ups that the scan has buried to the maturity depth; return how many.

    Those that wait for a second opinion are left; see models.treasury.topup_doubts. after_rereading: and those whose
    block was not read a second time yet, which may doubt them.
    """
    due = rows(
        "SELECT t.id FROM treasury_topups t JOIN chain_cursors c ON c.network = t.network"
        " WHERE t.network = %s AND t.status = 'pending' AND t.block_height <= c.height - %s + 1"
        " AND (NOT %s OR t.block_height <= COALESCE(c.reread_height, -1))"
        # Those that wait for a second opinion come last, so that they keep no other from its turn.
        f" ORDER BY {OPEN}, t.block_height LIMIT %s",
        (network.code, network.maturity, after_rereading, limit),
    )
    return sum(repeat_on_deadlock(lambda t=topup_id: _book(t)) for (topup_id,) in due)  # type: ignore[misc]


def _book(topup_id: UUID) -> bool:
    """Book a top-up once; False if that is done, or while it waits for a second opinion."""
    with transaction():
        found = one(
            f"UPDATE treasury_topups t SET status = 'booked' WHERE id = %s AND status = 'pending' AND NOT {OPEN}"
            " RETURNING round, currency, network, units, origin",
            (topup_id,),
        )
        if found is None:
            return False
        life, currency, network, units, origin = found
        if origin in BOOKED_ORIGINS:
            custody, equity = _accounts(currency, network)
            ledger.post(f"topup:{topup_id}:{life}", [Transfer(custody, equity, units)])
    return True


def reverse_orphans(network: str) -> int:
    """Take back the top-ups in blocks above the cursor, from where a reorg moved it; return how many."""
    orphans = rows(
        "SELECT t.id FROM treasury_topups t JOIN chain_cursors c ON c.network = t.network"
        " WHERE t.network = %s AND t.status <> 'reversed' AND t.block_height > c.height ORDER BY t.id",
        (network,),
    )
    return sum(repeat_on_deadlock(lambda t=topup_id: _reverse(t)) for (topup_id,) in orphans)  # type: ignore[misc]


def _reverse(topup_id: UUID) -> bool:
    with transaction():
        found = one(
            "SELECT status, round, currency, network, units, origin FROM treasury_topups"
            " WHERE id = %s AND status <> 'reversed' FOR UPDATE",
            (topup_id,),
        )
        if found is None:
            return False
        status, life, currency, network, units, origin = found
        execute("UPDATE treasury_topups SET status = 'reversed' WHERE id = %s", (topup_id,))
        if status == "booked" and origin in BOOKED_ORIGINS:
            custody, equity = _accounts(currency, network)
            ledger.post(f"topup:{topup_id}:{life}:reverse", [Transfer(equity, custody, units)])
    return True


def _accounts(currency: str, network: str) -> tuple[Account, Account]:
    return Account(GATEWAY, CUSTODY, currency, network), Account(GATEWAY, EQUITY, currency)

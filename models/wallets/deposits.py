"""Reads the deposits of a static wallet, one or pages of all. See models.wallets.settlement.

A wallet gathers deposits for years, so nothing here reads them all.
"""

from __future__ import annotations

from uuid import UUID

from models.db.base import touched
from models.db.query import descending
from models.deposits.rows import Deposit


def find(wallet_id: UUID, deposit_id: UUID) -> Deposit | None:
    """Return a deposit of a wallet; None if a reorg has made it another's. The wallet's lock keeps it as it is."""
    return Deposit.first("d.id = %s AND d.owner_id = %s", (deposit_id, wallet_id))


def mark_announced(deposit_id: UUID) -> bool:
    """Note that its event is written; False if it was before, and a reorg brought the same deposit back."""
    return touched("UPDATE deposits SET is_announced = true WHERE id = %s AND NOT is_announced", (deposit_id,))


def page(wallet_id: UUID, *, limit: int, offset: int) -> list[Deposit]:
    """Return some of a wallet's deposits, newest first, whatever became of them."""
    newest_first = Deposit.select().order_by(descending(Deposit.seen_at), descending(Deposit.id))
    return newest_first.where(Deposit.owner_id == wallet_id).limit(limit, offset=offset).all()

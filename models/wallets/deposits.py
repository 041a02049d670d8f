"""The deposits of a static wallet: those that wait for a step, and pages of all. See models.wallets.settlement.

A wallet gathers deposits for years, so nothing here reads them all.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from core.catalogue.catalogue import Catalogue
from models.db.base import column, touched
from models.deposits import witnesses as quorum
from models.deposits.rows import Deposit, read


def pending_due(catalogue: Catalogue, wallet_id: UUID, *, limit: int) -> list[UUID]:
    """Return deposits that the scan of their own network has buried deep enough, oldest first."""
    confirmations = msgspec.json.encode({code: network.confirmations for code, network in catalogue.networks.items()})
    return column(
        "SELECT d.id FROM deposits d JOIN chain_cursors c ON c.network = d.network"
        " WHERE d.owner_id = %s AND d.owner_kind = 'wallet' AND d.status = 'pending'"
        f" AND d.block_height <= c.height - (%s::jsonb ->> d.network)::integer + 1 AND NOT {quorum.OPEN}"
        " ORDER BY d.seen_at, d.id LIMIT %s",
        (wallet_id, confirmations.decode(), limit),
    )


def held(wallet_id: UUID, *, limit: int) -> list[UUID]:
    """Return deposits that were confirmed and neither credited nor sent back, strays left out, oldest first."""
    return column(
        "SELECT id FROM deposits WHERE owner_id = %s AND owner_kind = 'wallet' AND status = 'confirmed'"
        " AND stray_reason IS NULL AND refund_id IS NULL ORDER BY seen_at, id LIMIT %s",
        (wallet_id, limit),
    )


def blocked(wallet_id: UUID, *, limit: int) -> list[Deposit]:
    """Return deposits that a blocked wallet holds back, strays left out. Its row is locked.

    The largest first: a crowd of specks must not stand before them.
    """
    return read(
        "d.owner_id = %s AND d.owner_kind = 'wallet' AND d.status = 'confirmed' AND d.stray_reason IS NULL"
        " AND d.refund_id IS NULL ORDER BY d.amount_units DESC, d.id LIMIT %s",
        (wallet_id, limit),
    )


def find(wallet_id: UUID, deposit_id: UUID) -> Deposit | None:
    """Return a deposit of a wallet; None if a reorg has made it another's. The wallet's lock keeps it as it is."""
    return Deposit.first("d.id = %s AND d.owner_id = %s", (deposit_id, wallet_id))


def mark_announced(deposit_id: UUID) -> bool:
    """Note that its event is written; False if it was before, and a reorg brought the same deposit back."""
    return touched("UPDATE deposits SET is_announced = true WHERE id = %s AND NOT is_announced", (deposit_id,))


def page(wallet_id: UUID, *, limit: int, offset: int) -> list[Deposit]:
    """Return some of a wallet's deposits, newest first, whatever became of them."""
    return read("d.owner_id = %s ORDER BY d.seen_at DESC, d.id DESC LIMIT %s OFFSET %s", (wallet_id, limit, offset))

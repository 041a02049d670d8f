"""Who owes the gateway since a reorg took what he had spent: rows that last until the debt is repaid.

Written by models.crediting in the transaction in which a debt arises, worked off by models.debt_repayment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from models.base import execute, one, rows

if TYPE_CHECKING:
    from uuid import UUID


class Debtor(NamedTuple):
    """A merchant who owes, and the coin."""

    merchant_id: UUID
    currency: str


def note(merchant_id: UUID, currency: str) -> None:
    """Have a debt repaid; its account is locked by the caller, so that nobody takes it for repaid meanwhile."""
    execute(
        "INSERT INTO debtors (merchant_id, currency) VALUES (%s, %s) ON CONFLICT DO NOTHING", (merchant_id, currency)
    )


def due(limit: int) -> list[Debtor]:
    """Return debtors, whoever was not looked at for longest first."""
    found = rows("SELECT merchant_id, currency FROM debtors ORDER BY looked_at, merchant_id LIMIT %s", (limit,))
    return [Debtor(*row) for row in found]


def lock(debtor: Debtor) -> bool:
    """Lock a debtor until the transaction ends; False where somebody else has him in hand, or he owes no more."""
    return (
        one("SELECT 1 FROM debtors WHERE (merchant_id, currency) = (%s, %s) FOR UPDATE SKIP LOCKED", tuple(debtor))
        is not None
    )


def look_later(debtor: Debtor) -> None:
    """Put a debtor behind the others."""
    execute("UPDATE debtors SET looked_at = app_now() WHERE (merchant_id, currency) = (%s, %s)", tuple(debtor))


def forget(debtor: Debtor) -> None:
    """Note that a locked debtor, whose debt's account is locked too, owes nothing any more."""
    execute("DELETE FROM debtors WHERE (merchant_id, currency) = (%s, %s)", tuple(debtor))

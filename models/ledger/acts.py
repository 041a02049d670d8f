"""Records operators' acts: operator, object, time and reason. Called in the transactions of the acts.

The rows are only added to; a trigger refuses every change. `sluice acts` lists them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from core.ids import uuid7
from models.db.base import in_transaction
from models.db.query import descending
from models.db.table import BY_DATABASE, Table

LIST_MAX: Final = 1_000

ActName = Literal[
    "addresses.skipped", "coin.kept", "departure.adopted", "departure.dismissed", "departure.written_off",
    "fees.taken", "key.created", "key.revoked", "merchant.changed", "merchant.created", "merchant.unlocked",
    "move.booked", "payout.cancelled", "payout.released", "payout.settled", "payouts.frozen", "payouts.unfrozen",
    "return.booked", "secrets.resealed", "surplus.adopted",
]  # fmt: skip


class Act(Table, table="operator_acts a"):
    """An act of an operator. subject: an object's id or name. details: the changes, without personal data."""

    id: UUID
    act: str
    subject: str
    details: str
    reason: str
    done_by: str
    done_at: datetime = BY_DATABASE


def record(act: ActName, subject: str, *, by: str, details: str = "", reason: str = "") -> None:
    """Record an act in the caller's transaction. by: the operator; '' records nothing."""
    if not by:
        return
    if not in_transaction():
        raise RuntimeError("an act is recorded in its own transaction")
    Act(id=uuid7(), act=act, subject=subject, details=details, reason=reason, done_by=by).write()


def listing(*, limit: int = LIST_MAX) -> list[Act]:
    """Return the acts, newest first."""
    return Act.select().order_by(descending(Act.id)).limit(min(limit, LIST_MAX)).all()

"""Cancels unsigned payouts that a revoked key ordered: by itself, by a rule or by a claimed cheque.

Called when a key is revoked, and by actors.signer.broadcast for what was made beside that or kept by a freeze.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import repeat_on_deadlock, transaction
from models.outcomes import endings
from models.payouts import withdrawals

REASON: Final = "The key that ordered this payout is revoked."


def cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    """Cancel one payout of a revoked key; False if it is signed or ended already, or its key is in force."""
    return repeat_on_deadlock(_cancel, catalogue, payout_id)


def cancel_all(catalogue: Catalogue, public_id: str) -> int:
    """Cancel all unsigned payouts of a revoked key; return their number."""
    return sum(cancel(catalogue, payout_id) for payout_id in withdrawals.unsigned_of(public_id))


def _cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    with transaction():
        payout = endings.lock(payout_id)
        if payout is None or not withdrawals.is_disowned(payout):
            return False
        return endings.cancel_unsigned(catalogue, payout_id, error=REASON) is not None

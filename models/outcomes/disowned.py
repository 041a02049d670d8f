"""Gives back what rules of automatic withdrawal made in the name of a key that is revoked.

Called when a key is revoked, and by actors.signer.broadcast for what was made beside that or kept by a freeze.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import repeat_on_deadlock, transaction
from models.outcomes import endings
from models.payouts import withdrawals

REASON: Final = "The key that named this address is revoked."


def cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    """Give back what a lost key's rule would send to whoever holds the key; False where that is not so any more."""
    return repeat_on_deadlock(_cancel, catalogue, payout_id)


def cancel_all(catalogue: Catalogue, public_id: str) -> int:
    """Give back all that rules of a revoked key made and nothing was signed for; return how many payouts."""
    return sum(cancel(catalogue, payout_id) for payout_id in withdrawals.unsigned_of(public_id))


def _cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    with transaction():
        payout = endings.lock(payout_id)
        if payout is None or not withdrawals.is_disowned(payout):
            return False
        return endings.cancel_unsigned(catalogue, payout_id, error=REASON) is not None

"""Revokes keys, and cancels unsigned payouts that a revoked key ordered or approved, by a rule or a cheque, too.

Called by cli.merchants, and by actors.signer.broadcast for payouts made at the same time or kept by a freeze.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import repeat_on_deadlock, transaction
from models.ledger import acts
from models.merchants import notices
from models.merchants import rows as merchants
from models.outcomes import endings
from models.payout_links import rows as payout_links
from models.payouts import withdrawals
from models.payouts.withdrawals import Voice

REASON: Final = "The key that ordered this payout is revoked."
UNAPPROVED: Final = "A key that approved this payout is revoked."
_REASONS: Final[dict[Voice, str]] = {"order": REASON, "approval": UNAPPROVED}


class Revoked(NamedTuple):
    """How a revocation ended a key's orders. kept_cheques: those whose claim the database may lack."""

    was_active: bool
    stopped_withdrawals: list[str]
    cheques: int
    kept_cheques: int
    payouts: int


def revoke(catalogue: Catalogue, public_id: str, *, by: str = "", reason: str = "") -> Revoked:
    """Revoke a key and cancel its funded cheques and unsigned payouts, in a transaction each. Idempotent.

    by: the operator, whose act is recorded with the reason.

    Its rules, and the shares that they made, ask by themselves whether it is revoked. Raises UnknownKeyError.
    """
    with transaction():
        was_active = merchants.revoke_key(public_id)
        if was_active:
            merchant_id = merchants.merchant_of(public_id)
            acts.record("key.revoked", public_id, by=by, details=f"of merchant {merchant_id}", reason=reason)
            notices.write(merchant_id, f"The API key {public_id} is revoked.", topic="keys", by="operator")
    stopped = withdrawals.named_by(public_id)
    cheques, kept_cheques = payout_links.cancel_of_key(public_id)
    return Revoked(was_active, stopped, cheques, kept_cheques, cancel_all(catalogue, public_id))


def cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    """Cancel one payout of a revoked key; False if it is signed or ended already, or its keys are in force."""
    return repeat_on_deadlock(_cancel, catalogue, payout_id)


def cancel_all(catalogue: Catalogue, public_id: str) -> int:
    """Cancel all unsigned payouts that a revoked key ordered or approved; return their number."""
    return sum(cancel(catalogue, payout_id) for payout_id in withdrawals.unsigned_of(public_id))


def _cancel(catalogue: Catalogue, payout_id: UUID) -> bool:
    with transaction():
        payout = endings.lock(payout_id)
        voice = None if payout is None else withdrawals.revoked_voice(payout)
        if voice is None:
            return False
        return endings.cancel_unsigned(catalogue, payout_id, error=_REASONS[voice]) is not None

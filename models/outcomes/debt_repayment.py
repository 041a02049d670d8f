"""Repays debts out of payouts that are not signed: these could not leave while their merchant owes anyway.

Called by actors.merchants.debts. The newest goes first, one in a transaction, and no more of them than the debt needs.
Locks are taken in one order: the debtor, invoice or wallet, payout, debt, balances. The debtor's row is not changed
before the debt is locked: a transaction that records a debt has locked the debt, and waits for a changed row, though
not for a locked one.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import transaction, value
from models.ledger import debts, ledger
from models.ledger.debts import Debtor
from models.outcomes import endings
from models.spends import signing_stops

REASON: Final = "its money repays a debt"

# Money that a refund returns to suspense is not the merchant's yet, and repays nothing.
_NEWEST: Final = (
    "SELECT id FROM payouts p WHERE merchant_id = %s AND currency = %s AND funded_from = 'available'"
    # One that endings.is_kept() keeps no other.
    " AND network <> ALL(%s) AND (status IN ('pending', 'awaiting_cosign') OR (status = 'approved' AND NOT EXISTS"
    " (SELECT 1 FROM payout_freezes f WHERE (f.scope, f.name) IN (('all', ''), ('network', p.network)))))"
    " ORDER BY id DESC LIMIT 1"
)


def repay(catalogue: Catalogue, debtor: Debtor) -> bool:
    """Cancel a debtor's newest payout that is not signed; True if there may be another one to cancel.

    Its held amount repays the debt, and the rest is available again. The row of a merchant without debt is deleted.
    """
    with transaction():
        if not debts.lock(debtor):
            return False
        if ledger.debt(*debtor) <= 0:
            return _forget(debtor)
        newest = _newest(debtor)
        if newest is None:
            return False
        # None if it was signed meanwhile; the next tick finds another.
        return endings.cancel_unsigned(catalogue, newest, error=REASON) is not None


def _newest(debtor: Debtor) -> UUID | None:
    payout_id: UUID | None = value(_NEWEST, (*debtor, list(signing_stops.doubtful())))
    return payout_id


def _forget(debtor: Debtor) -> bool:
    # Under the debt's lock: a debt that arises now finds the row, or writes it again.
    if ledger.lock_debt(*debtor) <= 0:
        debts.forget(debtor)
    return False

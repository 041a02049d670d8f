"""Has debts repaid out of payouts that are not signed. Rung by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.context import context
from actors.queue.broker import doorbell
from actors.queue.isolated import isolated
from models.ledger import debts
from models.outcomes import debt_repayment

DEBTORS_PER_STEP: Final = 20
# Of one debtor; the next ring goes on.
PAYOUTS_PER_STEP: Final = 100


@doorbell(queue="maintenance")
def repay_debts() -> None:
    """Cancel what some debtors' debts need, and tell of it."""
    for debtor in debts.due(DEBTORS_PER_STEP):
        debts.look_later(debtor)
        for _ in range(PAYOUTS_PER_STEP):
            if not isolated(debtor.merchant_id, debt_repayment.repay, context().catalogue, debtor):
                break

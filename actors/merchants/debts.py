"""Repays debts by cancelling payouts that are not signed. Notified by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.context import context
from actors.queue.broker import doorbell
from actors.queue.isolated import isolated
from models.ledger import debts
from models.outcomes import debt_repayment

DEBTORS_PER_STEP: Final = 20
# The payouts of one debtor that one run cancels; the next run continues.
PAYOUTS_PER_STEP: Final = 100


@doorbell(queue="maintenance")
def repay_debts() -> None:
    """Cancel as many payouts as some debtors' debts need, and report each one."""
    for debtor in debts.due(DEBTORS_PER_STEP):
        debts.look_later(debtor)
        for _ in range(PAYOUTS_PER_STEP):
            if not isolated(debtor.merchant_id, debt_repayment.repay, context().catalogue, debtor):
                break

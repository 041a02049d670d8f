"""Does to a payment or wallet what the end of its refund means. Called by models.outcomes.endings.

The invoice or the wallet is locked by the caller, who has waited for the turn of its receipt.
"""

from __future__ import annotations

from core.catalogue.catalogue import Catalogue
from models.deposits import crediting
from models.deposits import rows as deposits
from models.invoices import settlement
from models.ledger import debts, ledger
from models.ledger.ledger import GATEWAY, NETWORK_FEES, SUSPENSE, Account
from models.payouts.rows import PayoutRow
from models.wallets import rows as wallets


def book_returned(payout: PayoutRow) -> None:
    """Return the held amount of a failed or cancelled refund to suspense, and free its deposits for a new decision.

    The part from deposits that a reorg took repays their merchant's debt, which the reorg made. Deposits return whole:
    the part of the fee that is kept comes out of available, and a shortfall becomes debt.
    """
    merchant_id, currency = payout.merchant_id, payout.currency
    waiting = [deposit for deposit in deposits.of_refund(payout.id) if deposit.status == "confirmed"]
    taken_units = sum(deposit.refund_units or 0 for deposit in waiting)
    lost_units = payout.held_units - taken_units
    repaid, kept = debts.give(merchant_id, currency, lost_units, out_of=payout.held_account)
    suspense, fees = Account(merchant_id, SUSPENSE, currency), Account(GATEWAY, NETWORK_FEES, currency)
    ledger.post(
        f"payout:{payout.id}:return",
        [
            *crediting.rounded(
                payout.held_account, suspense, out=taken_units, into=sum(d.amount_units for d in waiting)
            ),
            repaid,
            kept,
            *debts.charge(merchant_id, currency, payout.kept_units, into=fees, coming_units=kept.units),
        ],
    )
    deposits.give_back(payout.id)


def follow(catalogue: Catalogue, payout: PayoutRow) -> None:
    """Settle a refund's payment or wallet again: the refund ended the payment, or returned its deposits."""
    if payout.invoice_id is not None:
        settlement.settle_locked(catalogue, payout.invoice_id)
    if payout.wallet_id is not None and payout.status != "confirmed":
        # A blocked wallet keeps them; one that was unblocked meanwhile credits them with the next notification.
        wallets.note_credit_due(payout.wallet_id)

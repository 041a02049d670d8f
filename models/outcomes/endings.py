"""Ends a payout: its money leaves the books, or goes back to where it came from. Each in the caller's transaction.

Locks are taken in one order everywhere: invoice or wallet, the turn of its receipt, payout, others' shares, debt,
balances. A payout of an invoice or a wallet is therefore ended with end(), which locks that first.
"""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.payouts.states import UNSIGNED_PAYOUTS
from models.db.base import column, rows
from models.invoices import receipts
from models.invoices import rows as invoices
from models.ledger import debts, ledger, shares
from models.ledger.ledger import CUSTODY, DEBT, GATEWAY, HOLD, NETWORK_FEES, Account, Transfer
from models.payouts import freezes
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.refunds import endings as refund_endings
from models.spends import rows as spends
from models.spends import signing_stops
from models.wallets import rows as wallets

Ending = Literal["confirmed", "failed", "cancelled"]


def end(
    catalogue: Catalogue,
    payout_id: UUID,
    ending: Ending,
    *,
    txid: str | None = None,
    block_height: int | None = None,
    error: str | None = None,
    kept_units: int = 0,
) -> PayoutRow | None:
    """End a payout in the caller's transaction: status, event, ledger, and dependent rows.

    kept_units: the part of the fee that a failed payout does not get back. None if it has ended already.
    Raises ForbiddenTransitionError if its status does not allow it.
    """
    before = lock(payout_id)
    if before is None or before.status == ending:
        return None
    after = payouts.move(
        catalogue, before, ending, txid=txid, block_height=block_height, error=error, kept_units=kept_units
    )
    if after is None:
        return None
    if after.invoice_id is not None:
        _lock_debts(after.invoice_id, after)
    if ending == "confirmed":
        _book_left(after)
    elif after.funded_from == "available":
        _book_returned(after)
    else:
        refund_endings.book_returned(after)
    if after.invoice_id is not None or after.wallet_id is not None:
        refund_endings.follow(catalogue, after)
    return after


def _lock_debts(invoice_id: UUID, refund: PayoutRow) -> None:
    """Lock the debts in the coins of a refund and of its payment.

    The refund's end settles the invoice again, which may credit deposits after the balances of the refund are locked.
    """
    credited = column(
        "SELECT DISTINCT currency FROM deposits WHERE owner_id = %s AND stray_reason IS NULL", (invoice_id,)
    )
    for currency in sorted({refund.currency, *credited}):
        ledger.lock_account(Account(refund.merchant_id, DEBT, currency))


def cancel_unsigned(
    catalogue: Catalogue, payout_id: UUID, *, error: str | None = None, is_forced: bool = False
) -> PayoutRow | None:
    """Cancel a payout without signed bytes that may still take effect; None if it has some, or has ended.

    Takes the same locks as the signer's transaction that commits bytes, so that the second of the two sees the first.
    A payout that is_kept() stays, unless is_forced: it may yet turn out that bytes were signed for it.
    """
    payout = lock(payout_id)
    if payout is None or payout.status not in UNSIGNED_PAYOUTS or spends.of_payout(payout_id) is not None:
        return None
    if is_kept(payout) and not is_forced:
        return None
    return end(catalogue, payout_id, "cancelled", error=error)


def is_kept(payout: PayoutRow) -> bool:
    """Return whether an unsigned payout may not be given back, as bytes may exist that its row does not know.

    An approved one while its network is frozen. While the database may lack what left there, the others as well: they
    may have been approved and paid in the lost time.
    """
    if payout.status == "approved" and freezes.is_network_frozen(payout.network):
        return True
    return payout.status in UNSIGNED_PAYOUTS and payout.network in signing_stops.doubtful()


def lock(payout_id: UUID) -> PayoutRow | None:
    """Lock a payout, its invoice or wallet before it, and return it as it is then."""
    for invoice_id, wallet_id in rows("SELECT invoice_id, wallet_id FROM payouts WHERE id = %s", (payout_id,)):
        if invoice_id is not None and (invoice := invoices.lock(invoice_id)) is not None:
            # The refund's end settles the invoice again, after it has locked balances.
            receipts.wait_turn(invoice)
        if wallet_id is not None:
            wallets.lock(wallet_id)
    return payouts.lock(payout_id)


def _book_left(payout: PayoutRow) -> None:
    """Take what arrived out of custody; the fee that was charged is the gateway's, whatever the chain took."""
    ledger.post(
        f"payout:{payout.id}:leave",
        [
            Transfer(payout.held_account, Account(GATEWAY, CUSTODY, payout.currency, payout.network), payout.to_units),
            Transfer(payout.held_account, Account(GATEWAY, NETWORK_FEES, payout.currency), payout.fee_units),
        ],
    )


def _book_returned(payout: PayoutRow) -> None:
    """Give what was held back, less what of the fee is kept: others' shares, then debts, then available."""
    others_units = shares.give_back(payout.id) if payout.kind == "refund" else 0
    returned = payout.held_units - payout.kept_units - others_units
    ledger.post(
        f"payout:{payout.id}:return",
        [
            Transfer(payout.held_account, Account(payout.merchant_id, HOLD, payout.currency), others_units),
            *debts.give(payout.merchant_id, payout.currency, returned, out_of=payout.held_account),
            Transfer(payout.held_account, Account(GATEWAY, NETWORK_FEES, payout.currency), payout.kept_units),
        ],
    )

"""Takes back deposits whose blocks left the chain, and stops the refunds that they were to pay.

Called by actors.polling. A reorg never finds a reason to stop here: what was sent already becomes the merchant's debt.
The owner of a deposit is locked before its refunds, these before debts and balances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models import crediting, deposits, invoices, payout_endings, payouts, refunds, settlement, wallets
from models.base import execute, repeat_on_deadlock, transaction

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from core.catalogue import Catalogue
    from models.payouts import PayoutRow

REASON: Final = "the deposit left the chain"


def reverse_orphans(catalogue: Catalogue, network: str) -> bool:
    """Take back all deposits whose blocks left the chain. Returns whether a webhook was queued.

    Call it after the cursor was moved back and before it moves on; a scan that begins calls it too, as the last one
    may have died in between. The cursor's time is then that of the fork, so no invoice expires for lack of a deposit
    that the other branch may still bring.
    """
    emitted = False
    for deposit_id, owner_id in deposits.orphans(network, kind="wallet"):
        emitted |= repeat_on_deadlock(lambda d=deposit_id, o=owner_id: reverse_of_wallet(catalogue, d, o))  # type: ignore[misc]
    for deposit_id, owner_id in deposits.orphans(network, kind="invoice"):
        emitted |= repeat_on_deadlock(lambda d=deposit_id, o=owner_id: reverse_of_invoice(catalogue, d, o))  # type: ignore[misc]
    return emitted


def reverse_of_invoice(catalogue: Catalogue, deposit_id: UUID, invoice_id: UUID) -> bool:
    """Take back a deposit of an invoice and judge that anew, all in one transaction.

    Returns whether a webhook was queued.
    """
    with transaction():
        invoice = invoices.lock(invoice_id)
        if invoice is None:
            return False
        stopped = _stop_refund_of(catalogue, deposit_id)
        deposit = deposits.reverse(deposit_id)
        if deposit is None:
            return stopped
        if deposit.status == "credited":
            # Before the deposit is booked: what they held pays for it.
            stopped |= _stop(catalogue, refunds.beyond_refundable(invoice_id))
        crediting.book_reversed(deposit, invoice.merchant_id)
        execute(
            "UPDATE invoices SET fee_fixed_taken_units = fee_fixed_taken_units - %s WHERE id = %s",
            (deposit.fee_fixed_units, invoice_id),
        )
        return settlement.settle_locked(catalogue, invoice_id) or stopped


def reverse_of_wallet(catalogue: Catalogue, deposit_id: UUID, wallet_id: UUID) -> bool:
    """Take back a deposit of a static wallet, credited or held.

    Nobody is told of that: the same transaction usually comes back with another block, and is credited again. A refund
    that is stopped is told of as all payouts are; returns whether there was one.
    """
    with transaction():
        wallet = wallets.lock(wallet_id)
        if wallet is None:
            return False
        stopped = _stop_refund_of(catalogue, deposit_id)
        deposit = deposits.reverse(deposit_id)
        if deposit is not None:
            crediting.book_reversed(deposit, wallet.merchant_id)
        return stopped


def _stop_refund_of(catalogue: Catalogue, deposit_id: UUID) -> bool:
    """Cancel the refund that takes a deposit out of suspense, where nothing of it is signed."""
    found = deposits.read("d.id = %s", (deposit_id,))
    refund_id = found[0].refund_id if found else None
    refund = None if refund_id is None else payouts.lock(refund_id)
    return refund is not None and _stop(catalogue, [refund])


def _stop(catalogue: Catalogue, stopped: Iterable[PayoutRow]) -> bool:
    """Cancel locked refunds that are not signed; returns whether there was one."""
    ended = [payout_endings.cancel_unsigned(catalogue, refund.id, error=REASON, is_forced=True) for refund in stopped]
    return any(refund is not None for refund in ended)

"""Takes back deposits whose blocks left the chain, and stops the refunds that they were to pay.

Called by actors.scan.follow. A reorg never finds a reason to stop here: what was sent already becomes the merchant's
debt. The owner of a deposit is locked before its refunds, these before debts and balances.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from models.db.base import execute, repeat_on_deadlock, transaction
from models.deposits import crediting
from models.deposits import rows as deposits
from models.invoices import rows as invoices
from models.invoices import settlement
from models.outcomes import endings as payout_endings
from models.payouts import rows as payouts
from models.refunds import rows as refunds
from models.wallets import rows as wallets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from core.catalogue.catalogue import Catalogue
    from models.payouts.rows import PayoutRow

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
    for deposit_id, owner_id, is_last in _with_lasts(deposits.orphans(network, kind="invoice")):
        emitted |= repeat_on_deadlock(
            lambda d=deposit_id, o=owner_id, j=is_last: reverse_of_invoice(catalogue, d, o, is_judged=j)  # type: ignore[misc]
        )
    return emitted


def _with_lasts(found: Sequence[tuple[UUID, UUID]]) -> Iterator[tuple[UUID, UUID, bool]]:
    """Say of each (deposit, owner) whether it is its owner's last; they are sorted by owners."""
    for (deposit_id, owner_id), after in zip_longest(found, found[1:]):
        yield deposit_id, owner_id, after is None or after[1] != owner_id


def reverse_of_invoice(catalogue: Catalogue, deposit_id: UUID, invoice_id: UUID, *, is_judged: bool = True) -> bool:
    """Take back a deposit of an invoice and judge that anew, all in one transaction.

    Not judged is one of which more is taken back at once: what those add up to would be read for every one of them. A
    scan that died before the last goes on with it. Returns whether a webhook was queued.
    """
    with transaction():
        invoice = invoices.lock(invoice_id)
        if invoice is None:
            return False
        stopped = _stop_refund_of(catalogue, deposit_id)
        deposit = deposits.reverse(deposit_id)
        if deposit is None:
            # Somebody was first; the caller's others of this invoice may wait for the judgement all the same.
            return (is_judged and settlement.settle_locked(catalogue, invoice_id)) or stopped
        if deposit.status == "credited":
            # Before the deposit is booked: what they held pays for it.
            stopped |= _stop(catalogue, refunds.beyond_refundable(invoice_id))
        crediting.book_reversed(deposit, invoice.merchant_id)
        execute(
            "UPDATE invoices SET fee_fixed_taken_units = fee_fixed_taken_units - %s WHERE id = %s",
            (deposit.fee_fixed_units, invoice_id),
        )
        if not is_judged:
            settlement.subtract(invoice_id, deposit)
            return stopped
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

"""Reverses deposits whose blocks left the chain, and cancels the refunds that they were to pay.

Called by actors.scan.follow, by actors.scan.witnesses for outvoted deposits, and by actors.signer.broadcast for refunds
that had to wait. A reversal always goes through: money that was already sent becomes the merchant's debt. Locks: the
owner of a deposit, the turn of its receipt, then its refunds, then debts and balances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import execute, repeat_on_deadlock, transaction, value
from models.deposits import crediting, probes, witnesses
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import events, quoting, receipts, settlement
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.outcomes import endings
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.refunds import rows as refunds
from models.wallets import rows as wallets

REASON: Final = "the deposit left the chain"


def reverse_orphans(catalogue: Catalogue, network: str) -> None:
    """Reverse all deposits whose blocks left the chain.

    Called after the cursor was moved back and before it moves on, and at the start of each scan, since the previous one
    may have died in between. The cursor's time is then that of the fork, so that no invoice expires while the other
    branch may still bring its deposit.
    """
    for deposit_id, owner_id in deposits.orphans(network, kind="wallet"):
        repeat_on_deadlock(reverse_of_wallet, catalogue, deposit_id, owner_id, network=network)
    for deposit_id, owner_id, is_last in _with_lasts(deposits.orphans(network, kind="invoice")):
        repeat_on_deadlock(reverse_of_invoice, catalogue, deposit_id, owner_id, is_judged=is_last, network=network)


def _with_lasts(pairs: Sequence[tuple[UUID, UUID]]) -> Iterator[tuple[UUID, UUID, bool]]:
    """Yield each (deposit, owner) with True if it is its owner's last; the input is sorted by owner."""
    for (deposit_id, owner_id), after in zip_longest(pairs, pairs[1:]):
        yield deposit_id, owner_id, after is None or after[1] != owner_id


def reverse_of_invoice(
    catalogue: Catalogue, deposit_id: UUID, invoice_id: UUID, *, is_judged: bool = True, network: str | None = None
) -> None:
    """Reverse a deposit of an invoice and settle the invoice again, in one transaction.

    is_judged: False if more deposits of the same invoice follow, so that their sum is read only once, with the last. If
    the scan dies before that one, the next scan does it. network: leave the deposit if the cursor has passed its block
    again.
    """
    with transaction():
        is_gone = network is None or deposits.is_orphan(network, deposit_id)
        invoice = invoices.lock(invoice_id)
        if invoice is None:
            return
        receipts.wait_turn(invoice)
        quoting.write_before_release(catalogue, invoice)
        deposit = None
        if is_gone:
            _stop_refund_of(catalogue, deposit_id)
            deposit = deposits.reverse(deposit_id)
        if deposit is not None:
            events.note_reorged(catalogue, deposit)
            _take_back(catalogue, invoice, deposit)
        # If another process reversed this deposit, the caller's others of this invoice may still wait for the
        # settlement.
        if is_judged:
            settlement.settle_locked(catalogue, invoice_id)
        elif deposit is not None:
            settlement.subtract(invoice_id, deposit)


def _take_back(catalogue: Catalogue, invoice: InvoiceRow, deposit: Deposit) -> None:
    if deposit.status == "credited":
        # Before the reversal is booked: the amounts held for these refunds pay for it.
        beyond = refunds.beyond_refundable(invoice.id)
        crediting.lock_maturing(deposit)
        _stop(catalogue, beyond)
    crediting.book_reversed(deposit, invoice.merchant_id)
    execute(
        "UPDATE invoices SET fee_fixed_taken_units = fee_fixed_taken_units - %s WHERE id = %s",
        (deposit.fee_fixed_units, invoice.id),
    )


def reverse_of_wallet(catalogue: Catalogue, deposit_id: UUID, wallet_id: UUID, *, network: str | None = None) -> None:
    """Reverse a deposit of a static wallet, credited or held.

    No webhook reports it: usually another block brings the same transaction back, and it is credited again. A cancelled
    refund is reported like any payout. network: as with invoices.
    """
    with transaction():
        if network is not None and not deposits.is_orphan(network, deposit_id):
            return
        wallet = wallets.lock(wallet_id)
        if wallet is None:
            return
        _stop_refund_of(catalogue, deposit_id)
        deposit = deposits.reverse(deposit_id)
        if deposit is not None:
            crediting.book_reversed(deposit, wallet.merchant_id)


def outvote(catalogue: Catalogue, outvoted: Deposit) -> bool:
    """Reverse a deposit that only one provider reported; False if others agreed, or it has begun another life.

    It never counted, so nothing is booked and no timeline shows it. Call inside a transaction that locks the cursor and
    records the other providers' answers, and settle the owner afterwards.
    """
    if not witnesses.reject(outvoted):
        return False
    if outvoted.owner_kind == "wallet":
        wallets.lock(outvoted.owner_id)
    elif (invoice := invoices.lock(outvoted.owner_id)) is not None:
        receipts.wait_turn(invoice)
        quoting.write_before_release(catalogue, invoice)
    _stop_refund_of(catalogue, outvoted.id)
    deposit = deposits.reverse(outvoted.id)
    if deposit is not None and outvoted.owner_kind == "invoice":
        settlement.subtract(outvoted.owner_id, deposit)
    # It may have explained a balance in place of coin that no transaction shows.
    probes.fall_back(outvoted.network, outvoted.block_height - 1, address=outvoted.address)
    return deposit is not None


def _stop_refund_of(catalogue: Catalogue, deposit_id: UUID) -> None:
    """Cancel the refund that took a deposit out of suspense, unless it is signed."""
    refund_id: UUID | None = value("SELECT refund_id FROM deposits WHERE id = %s", (deposit_id,))
    refund = None if refund_id is None else payouts.lock(refund_id)
    if refund is not None:
        _stop(catalogue, [refund])


def stop_lost(catalogue: Catalogue, payout_id: UUID) -> bool:
    """Cancel a refund whose deposit a reorg took, now that its signed bytes are dead; True if this one was cancelled.

    Of a payment's refunds, the newest that the remaining credit does not cover are cancelled, which may be others.
    """
    with transaction():
        refund = endings.lock(payout_id)
        if refund is None or not refunds.is_lost(refund):
            return False
        of_credited = refund.invoice_id if refund.funded_from == "available" else None
        beyond = [refund] if of_credited is None else refunds.beyond_refundable(of_credited)
        # Unlike refunds that a reorg cancels, it stays while its network is frozen: the scan may still find bytes of it
        # that no row knows.
        ended = [endings.cancel_unsigned(catalogue, each.id, error=REASON) for each in beyond]
    return any(each is not None and each.id == payout_id for each in ended)


def _stop(catalogue: Catalogue, stopped: Iterable[PayoutRow]) -> None:
    """Cancel the locked refunds that are not signed."""
    for refund in stopped:
        endings.cancel_unsigned(catalogue, refund.id, error=REASON, is_forced=True)

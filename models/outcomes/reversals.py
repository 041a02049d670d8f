"""Takes back deposits whose blocks left the chain, and stops the refunds that they were to pay.

Called by actors.scan.follow, by actors.scan.witnesses for what others outvote, and by actors.signer.broadcast for what
had to wait. A reorg never finds a reason to stop here: what was sent already becomes the merchant's debt. The owner of
a deposit is locked before its refunds, these before debts and balances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from models.db.base import execute, repeat_on_deadlock, transaction, value
from models.deposits import crediting, witnesses
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import events, quoting, settlement
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.outcomes import endings as payout_endings
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.refunds import rows as refunds
from models.wallets import rows as wallets

REASON: Final = "the deposit left the chain"


def reverse_orphans(catalogue: Catalogue, network: str) -> None:
    """Take back all deposits whose blocks left the chain.

    Call it after the cursor was moved back and before it moves on; a scan that begins calls it too, as the last one
    may have died in between. The cursor's time is then that of the fork, so no invoice expires for lack of a deposit
    that the other branch may still bring.
    """
    for deposit_id, owner_id in deposits.orphans(network, kind="wallet"):
        repeat_on_deadlock(reverse_of_wallet, catalogue, deposit_id, owner_id, network=network)
    for deposit_id, owner_id, is_last in _with_lasts(deposits.orphans(network, kind="invoice")):
        repeat_on_deadlock(reverse_of_invoice, catalogue, deposit_id, owner_id, is_judged=is_last, network=network)


def _with_lasts(found: Sequence[tuple[UUID, UUID]]) -> Iterator[tuple[UUID, UUID, bool]]:
    """Say of each (deposit, owner) whether it is its owner's last; they are sorted by owners."""
    for (deposit_id, owner_id), after in zip_longest(found, found[1:]):
        yield deposit_id, owner_id, after is None or after[1] != owner_id


def reverse_of_invoice(
    catalogue: Catalogue, deposit_id: UUID, invoice_id: UUID, *, is_judged: bool = True, network: str | None = None
) -> None:
    """Take back a deposit of an invoice and judge that anew, all in one transaction.

    Not judged is one of which more is taken back at once: what those add up to would be read for every one of them. A
    scan that died before the last goes on with it. network: leave the deposit if the cursor has passed its block again.
    """
    with transaction():
        is_gone = network is None or deposits.is_orphan(network, deposit_id)
        invoice = invoices.lock(invoice_id)
        if invoice is None:
            return
        quoting.write_before_release(catalogue, invoice)
        deposit = None
        if is_gone:
            _stop_refund_of(catalogue, deposit_id)
            deposit = deposits.reverse(deposit_id)
        if deposit is not None:
            events.note_reorged(catalogue, deposit)
            _take_back(catalogue, invoice, deposit)
        # Where somebody was first, the caller's others of this invoice may wait for the judgement all the same.
        if is_judged:
            settlement.settle_locked(catalogue, invoice_id)
        elif deposit is not None:
            settlement.subtract(invoice_id, deposit)


def _take_back(catalogue: Catalogue, invoice: InvoiceRow, deposit: Deposit) -> None:
    if deposit.status == "credited":
        # Before the deposit is booked: what they held pays for it.
        _stop(catalogue, refunds.beyond_refundable(invoice.id))
    crediting.book_reversed(deposit, invoice.merchant_id)
    execute(
        "UPDATE invoices SET fee_fixed_taken_units = fee_fixed_taken_units - %s WHERE id = %s",
        (deposit.fee_fixed_units, invoice.id),
    )


def reverse_of_wallet(catalogue: Catalogue, deposit_id: UUID, wallet_id: UUID, *, network: str | None = None) -> None:
    """Take back a deposit of a static wallet, credited or held.

    Nobody is told of that: the same transaction usually comes back with another block, and is credited again. A refund
    that is stopped is told of as all payouts are. network: as with invoices.
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


def outvote(catalogue: Catalogue, told: Deposit) -> bool:
    """Take back a deposit that one provider alone told; False if it was agreed on, or is not that life any more.

    It never counted, so that nothing is booked and nobody's history tells of it. Call inside a transaction that locks
    the cursor and records what the others tell, and settle the owner after it.
    """
    if not witnesses.reject(told):
        return False
    if told.owner_kind == "wallet":
        wallets.lock(told.owner_id)
    elif (invoice := invoices.lock(told.owner_id)) is not None:
        quoting.write_before_release(catalogue, invoice)
    _stop_refund_of(catalogue, told.id)
    deposit = deposits.reverse(told.id)
    if deposit is not None and told.owner_kind == "invoice":
        settlement.subtract(told.owner_id, deposit)
    return deposit is not None


def _stop_refund_of(catalogue: Catalogue, deposit_id: UUID) -> None:
    """Cancel the refund that takes a deposit out of suspense, if nothing of it is signed."""
    refund_id: UUID | None = value("SELECT refund_id FROM deposits WHERE id = %s", (deposit_id,))
    refund = None if refund_id is None else payouts.lock(refund_id)
    if refund is not None:
        _stop(catalogue, [refund])


def stop_lost(catalogue: Catalogue, payout_id: UUID) -> bool:
    """Cancel a refund that a reorg left alone because it was signed, now that those bytes are dead; True if it did.

    Of a payment's refunds the newest are cancelled, as far as what is left does not cover them: that may be others.
    """
    with transaction():
        refund = payout_endings.lock(payout_id)
        if refund is None or not refunds.is_lost(refund):
            return False
        of_credited = refund.invoice_id if refund.funded_from == "available" else None
        beyond = [refund] if of_credited is None else refunds.beyond_refundable(of_credited)
        # Kept while its network is frozen, unlike those that a reorg stops: bytes of it that no row knows may be found.
        ended = [payout_endings.cancel_unsigned(catalogue, each.id, error=REASON) for each in beyond]
    return any(each is not None and each.id == payout_id for each in ended)


def _stop(catalogue: Catalogue, stopped: Iterable[PayoutRow]) -> None:
    """Cancel those locked refunds that are not signed."""
    for refund in stopped:
        payout_endings.cancel_unsigned(catalogue, refund.id, error=REASON, is_forced=True)

"""Does what a merchant decides about money that does not fit its sale. Callers hold the transaction."""

from __future__ import annotations

from core.catalogue.catalogue import Catalogue
from core.errors import PaymentNotResolvable
from models.db.base import execute
from models.deposits import crediting
from models.deposits import rows as deposits
from models.invoices import events, receipts, settlement
from models.invoices.rows import InvoiceRow


def accept_payment(catalogue: Catalogue, invoice: InvoiceRow) -> None:
    """Take what was paid for what was asked: an open wrong_amount with a deposit of its asset becomes paid.

    Not while a refund of it is under way. Raises payment.not_resolvable. The invoice is locked.
    """
    if invoice.status != "wrong_amount" or invoice.is_final or not invoice.confirmed_units:
        raise PaymentNotResolvable
    if deposits.is_refund_under_way(invoice.id):
        raise PaymentNotResolvable("A refund of the payment is under way.")
    execute("UPDATE invoices SET accepted_units = confirmed_units WHERE id = %s", (invoice.id,))
    events.note_accepted(catalogue, invoice)
    settlement.settle_locked(catalogue, invoice.id)


def accept_stray(catalogue: Catalogue, invoice: InvoiceRow, txid: str) -> None:
    """Credit a confirmed stray in its own coin, less the percent fee, in whatever status the invoice is.

    All strays of the transaction are meant, but no more than a page of them at once, the largest first: the same call
    again takes the next ones. Raises payment.not_resolvable. The invoice is locked.
    """
    strays = deposits.undecided_strays(invoice.id, txid, limit=settlement.DEPOSITS_PER_PAGE)
    if not strays:
        raise PaymentNotResolvable
    receipts.wait_turn(invoice)
    events.note_strays_accepted(catalogue, invoice, strays)
    for stray in strays:
        crediting.credit(catalogue, stray, invoice.merchant_id, fee_ppm=invoice.fee_ppm, fee_fixed_due_units=0)
    settlement.settle_locked(catalogue, invoice.id)

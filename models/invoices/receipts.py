"""Writes what buyers are e-mailed of their payments: the receipt, once, and what a merchant asks to have sent.

Called by models.invoices.settlement and actors.invoices.resolution, in their transactions; actors.upkeep.emails sends.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.catalogue.catalogue import Catalogue
from core.errors import EmailTooMany, TooManyRequestsError
from core.invoices import letters, states
from core.invoices.letters import PaymentFacts
from core.texts.letters import Body
from core.texts.render import coin_text, price_text
from models.db.base import one, touched
from models.invoices.rows import InvoiceRow
from models.merchants import emails
from models.merchants import rows as merchants
from models.merchants.emails import Draft, Post

# Limits the requests for one payment, per ASKED_S.
ASKED_MAX: Final = 5
ASKED_S: Final = 3_600


def wait_turn(invoice: InvoiceRow) -> None:
    """Wait for the turn to write the receipt of a locked invoice, if it can get one; before any balance is locked."""
    if invoice.payer_email and invoice.receipt_at is None and invoice.status not in states.DECIDED_STATUSES:
        emails.wait_turn(invoice.merchant_id)


def write_once(catalogue: Catalogue, paid: InvoiceRow) -> None:
    """Write the receipt of a payment just decided, unless it was written before.

    Writes nothing without the buyer's address, or where this gateway sends no e-mail. The caller has locked the
    invoice.
    """
    post = emails.post()
    if post is None or not paid.payer_email:
        return
    if touched("UPDATE invoices SET receipt_at = app_now() WHERE id = %s AND receipt_at IS NULL", (paid.id,)):
        emails.add(paid.merchant_id, [_receipt(catalogue, paid, post, paid.payer_email)], kind="receipt", box=post.box)


def write_asked(catalogue: Catalogue, invoice: InvoiceRow, post: Post, recipient: str) -> None:
    """Write what a merchant asks for: the receipt of a payment that is paid, else the way to its page.

    Raises TooManyRequestsError past ASKED_MAX, email.too_many past the caps of a day.

    The caller has locked the invoice, so that no other call counts at the same time.
    """
    _check_count(invoice)
    make = _receipt if invoice.status in states.DECIDED_STATUSES else _link
    if not emails.add(invoice.merchant_id, [make(catalogue, invoice, post, recipient)], kind="payment", box=post.box):
        raise EmailTooMany


def _check_count(invoice: InvoiceRow) -> None:
    sent = one(
        "SELECT count(*), ceil(extract(epoch FROM min(created_at) - app_now()))::integer + %s FROM emails"
        " WHERE object_id = %s AND kind = 'payment' AND created_at > app_now() - make_interval(secs => %s)",
        (ASKED_S, invoice.id, ASKED_S),
    )
    if sent is not None and sent[0] >= ASKED_MAX:
        raise TooManyRequestsError(max(1, sent[1]))


def _receipt(catalogue: Catalogue, paid: InvoiceRow, post: Post, recipient: str) -> Draft:
    payment = _payment(catalogue, paid, post)
    return _draft(paid, recipient, letters.receipt_subject(payment), letters.receipt_body(payment))


def _link(catalogue: Catalogue, invoice: InvoiceRow, post: Post, recipient: str) -> Draft:
    payment, is_open = _payment(catalogue, invoice, post), invoice.status in {"select", "check"}
    return _draft(
        invoice, recipient, letters.link_subject(payment, is_open=is_open), letters.link_body(payment, is_open=is_open)
    )


def _draft(invoice: InvoiceRow, recipient: str, subject: str, body: Body) -> Draft:
    return Draft(object_id=invoice.id, recipient=recipient, subject=subject, body=msgspec.json.encode(body))


def _payment(catalogue: Catalogue, invoice: InvoiceRow, post: Post) -> PaymentFacts:
    excess_units = invoice.confirmed_units - (invoice.payer_units or 0) if invoice.status == "paid_over" else 0
    network = catalogue.networks[invoice.network].name if invoice.network else ""
    return PaymentFacts(
        merchant=merchants.name_of(invoice.merchant_id),
        order_id=invoice.order_id or "",
        price=f"{price_text(catalogue, invoice.price_currency, invoice.price_units)} {invoice.price_currency}",
        received=f"{_coin(catalogue, invoice, invoice.confirmed_units)} on {network}" if network else "",
        excess=_coin(catalogue, invoice, excess_units) if excess_units else "",
        txid=invoice.txid,
        uuid=str(invoice.id),
        url=f"{post.pay_url}/pay/{invoice.id}",
        moment=invoice.decided_at or invoice.expires_at,
    )


def _coin(catalogue: Catalogue, invoice: InvoiceRow, units: int) -> str:
    return f"{coin_text(catalogue, invoice.pay_currency, units)} {invoice.pay_currency}"

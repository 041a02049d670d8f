"""Says what a buyer is e-mailed of a payment: its receipt, or the way to its page. Laid out by core.texts.letters.

Used by models.invoices.receipts. Subjects are of amounts and codes alone: nothing that a merchant wrote is in a header.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from core.texts.letters import Body, Letter, laid_out


class PaymentFacts(NamedTuple):
    """The facts of a payment in e-mails, as texts; empty if absent."""

    merchant: str
    order_id: str
    # The price, and what was received on which network: with their codes.
    price: str
    received: str
    # The part of it above the price.
    excess: str
    txid: str
    uuid: str
    url: str
    # When it was decided, or when it expires.
    moment: datetime


def receipt_subject(payment: PaymentFacts) -> str:
    """Return the subject of a receipt."""
    return f"Receipt for {payment.price}"


def receipt_body(payment: PaymentFacts) -> Body:
    """Return the receipt of a payment that is paid."""
    more = (f"That is {payment.excess} more than was asked: please turn to {payment.merchant} about it.",)
    return laid_out(
        Letter(
            lead=f"{payment.merchant} received your payment.",
            headline=payment.price,
            paragraphs=more if payment.excess else (),
            facts=(
                ("Received", payment.received),
                ("Order", payment.order_id),
                ("Date", _minute(payment.moment)),
                ("Transaction", payment.txid),
                ("Payment", payment.uuid),
            ),
            button="See the payment",
            url=payment.url,
            closing="Keep this e-mail as your receipt. It was sent because this address was given with the payment.",
        )
    )


def link_subject(payment: PaymentFacts, *, is_open: bool) -> str:
    """Return the subject of the e-mail that leads to a payment's page."""
    return f"{'Your payment of' if is_open else 'About your payment of'} {payment.price}"


def link_body(payment: PaymentFacts, *, is_open: bool) -> Body:
    """Return the e-mail that leads to a payment's page: to pay there, or to see what became of it."""
    lead = (
        f"{payment.merchant} asks you for a payment." if is_open else f"This is about a payment to {payment.merchant}."
    )
    closing = f"It can be paid until {_minute(payment.moment)}." if is_open else "The page says what became of it."
    return laid_out(
        Letter(
            lead=lead,
            headline=payment.price,
            facts=(("Order", payment.order_id), ("Payment", payment.uuid)),
            button="Pay now" if is_open else "See the payment",
            url=payment.url,
            closing=closing,
        )
    )


def _minute(moment: datetime) -> str:
    return f"{moment:%d %B %Y, %H:%M} UTC"

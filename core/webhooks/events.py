"""Declares the bodies of webhooks, and which event has which. For api.events, which describes them.

Source: API reference, "Events".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode, OrderIdText, TxidText
from core.http.requests import UuidText, any_of

Event = Literal[
    "invoice.paid",
    "invoice.paid_over",
    "invoice.wrong_amount",
    "invoice.expired",
    "wallet.paid",
    "payout.pending",
    "payout.approved",
    "payout.awaiting_cosign",
    "payout.broadcasting",
    "payout.sent",
    "payout.confirmed",
    "payout.failed",
    "payout.cancelled",
]

_TEST: Final = "true if POST /v1/webhooks/test sent it; else absent."


class WebhookBody(Answer, kw_only=True):
    """The common part of all events."""

    uuid: Annotated[UuidText, Meta(description="The identifier of the event's payment, wallet or payout.")]
    order_id: OrderIdText
    txid: TxidText
    test: Annotated[bool | UnsetType, Meta(description=_TEST)] = UNSET


class PaymentEvent(WebhookBody, kw_only=True):
    """The body of an invoice.* event: the payment as it was when it happened."""

    type: Annotated[Literal["payment"], Meta(description="The kind of object: payment, wallet or payout.")]
    amount: Annotated[str, Meta(description="The price, in currency.", examples=["125.50"])]
    currency: Annotated[str, Meta(description="The currency of the price.", examples=["USD"])]
    payment_amount: Annotated[
        str | None, Meta(description="The sum of confirmed deposits, in payer_currency; null if there are none.")
    ]
    payer_amount: Annotated[
        str, Meta(description="The amount to pay, in payer_currency; empty before a coin is chosen.")
    ]
    payer_currency: Annotated[str, Meta(description="The coin that the buyer pays in; empty before it is chosen.")]
    status: Annotated[Literal["paid", "paid_over", "wrong_amount", "expired"], Meta(description="The payment_status.")]
    revision: Annotated[
        int,
        Meta(
            description="The number of status changes of the payment so far. Deduplicate by uuid, status and revision.",
            examples=[1],
        ),
    ]
    is_final: Annotated[
        bool, Meta(description="true if the status is final. A late deposit or a reorg can reopen the payment.")
    ]
    additional_data: Annotated[str, Meta(description="Your private text, as you sent it.")]


class WalletEvent(WebhookBody, kw_only=True):
    """The body of wallet.paid: a deposit that was credited."""

    type: Annotated[Literal["wallet"], Meta(description="The kind of object: payment, wallet or payout.")]
    address: Annotated[str, Meta(description="The wallet's address.")]
    network: Annotated[str, Meta(description="The network of the deposit.", examples=["ethereum"])]
    currency: Annotated[str, Meta(description="The coin that the wallet was made for.", examples=["USDT"])]
    payment_amount: Annotated[
        str, Meta(description="The amount of the deposit, in payer_currency, before the gateway's fee.")
    ]
    payer_currency: Annotated[str, Meta(description="The coin of the deposit.")]
    status: Annotated[Literal["paid"], Meta(description="Always paid.")]
    is_final: Annotated[bool, Meta(description="Always true.")]


class PayoutEvent(WebhookBody, kw_only=True):
    """The body of a payout.* event: the payout as it was when it happened."""

    type: Annotated[Literal["payout"], Meta(description="The kind of object: payment, wallet or payout.")]
    amount: Annotated[str, Meta(description="The requested amount, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="The recipient's address.")]
    status: Annotated[
        Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel"],
        Meta(description="The payout's status. The event's name is more precise."),
    ]
    is_final: Annotated[bool, Meta(description="true if the status is paid, fail or cancel.")]
    commission: Annotated[
        str | UnsetType,
        Meta(description="The part of the network fee that was not returned, in currency; only in payout.failed."),
    ] = UNSET


# How a field that holds any of them refers to them.
BODIES: Final = any_of(PaymentEvent, WalletEvent, PayoutEvent)


class EventKind(NamedTuple):
    """An event's body, and when it happens."""

    body: type[WebhookBody]
    when: str


EVENTS: Final[dict[Event, EventKind]] = {
    "invoice.paid": EventKind(PaymentEvent, "A payment is paid within tolerance, or accepted."),
    "invoice.paid_over": EventKind(PaymentEvent, "A payment is paid above tolerance."),
    "invoice.wrong_amount": EventKind(PaymentEvent, "A payment expired short of its amount, or was paid late."),
    "invoice.expired": EventKind(PaymentEvent, "A payment expired without a deposit."),
    "wallet.paid": EventKind(WalletEvent, "A deposit to a static wallet was credited: one event for each."),
    "payout.pending": EventKind(PayoutEvent, "A payout waits for an approval."),
    "payout.approved": EventKind(PayoutEvent, "A payout is approved and waits to be sent."),
    "payout.awaiting_cosign": EventKind(PayoutEvent, "A payout waits for another approver."),
    "payout.broadcasting": EventKind(PayoutEvent, "A payout's transaction is signed."),
    "payout.sent": EventKind(PayoutEvent, "A payout's transaction was sent."),
    "payout.confirmed": EventKind(PayoutEvent, "A payout is confirmed on its network."),
    "payout.failed": EventKind(PayoutEvent, "A payout failed for good; what it held is available again."),
    "payout.cancelled": EventKind(PayoutEvent, "A payout was cancelled before it was sent."),
}

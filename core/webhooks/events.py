"""Declares the bodies of webhooks, and which event has which. For api.events, which describes them.

Source: API reference, "Events".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode, OrderIdText, TxidText
from core.net.requests import UuidText, any_of

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

_TEST: Final = "true where POST /v1/webhooks/test sent it; absent otherwise."


class WebhookBody(Answer, kw_only=True):
    """What all events have in common."""

    uuid: Annotated[UuidText, Meta(description="The payment, wallet or payout that the event is about.")]
    order_id: OrderIdText
    txid: TxidText
    test: Annotated[bool | UnsetType, Meta(description=_TEST)] = UNSET


class PaymentEvent(WebhookBody, kw_only=True):
    """The body of an invoice.* event: the payment as it was when it happened."""

    type: Annotated[Literal["payment"], Meta(description="What the event is about.")]
    amount: Annotated[str, Meta(description="The price in currency.", examples=["125.50"])]
    currency: Annotated[str, Meta(description="The pricing currency.", examples=["USD"])]
    payment_amount: Annotated[str | None, Meta(description="The confirmed sum, in payer_currency; null without any.")]
    payer_amount: Annotated[str, Meta(description="What was due, in payer_currency; empty before a coin is chosen.")]
    payer_currency: Annotated[str, Meta(description="The settlement coin; empty before it is chosen.")]
    status: Annotated[Literal["paid", "paid_over", "wrong_amount", "expired"], Meta(description="The payment_status.")]
    revision: Annotated[
        int, Meta(description="Counts the payment's events; deduplicate by uuid, status and revision.", examples=[1])
    ]
    is_final: Annotated[bool, Meta(description="Whether the status is final. A late deposit or a reorg reopens it.")]
    additional_data: Annotated[str, Meta(description="Private; as it was given.")]


class WalletEvent(WebhookBody, kw_only=True):
    """The body of wallet.paid: a deposit that was credited."""

    type: Annotated[Literal["wallet"], Meta(description="What the event is about.")]
    address: Annotated[str, Meta(description="The wallet's address.")]
    network: Annotated[str, Meta(description="The network over which the deposit came.", examples=["ethereum"])]
    currency: Annotated[str, Meta(description="The coin for which the wallet was made.", examples=["USDT"])]
    payment_amount: Annotated[str, Meta(description="What came, in payer_currency, before the platform fee.")]
    payer_currency: Annotated[str, Meta(description="The coin that came.")]
    status: Annotated[Literal["paid"], Meta(description="Always paid.")]
    is_final: Annotated[bool, Meta(description="Always true.")]


class PayoutEvent(WebhookBody, kw_only=True):
    """The body of a payout.* event: the payout as it was when it happened."""

    type: Annotated[Literal["payout"], Meta(description="What the event is about.")]
    amount: Annotated[str, Meta(description="What was asked for, in currency.", examples=["25"])]
    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="The recipient.")]
    status: Annotated[
        Literal["check", "process", "paid", "awaiting_cosign", "fail", "cancel"],
        Meta(description="As the payout shows it; the event's name has the finer one."),
    ]
    is_final: Annotated[bool, Meta(description="true for paid, fail and cancel.")]
    commission: Annotated[
        str | UnsetType,
        Meta(description="Only of payout.failed: what of the network fee stays taken, in currency."),
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

"""Declares requests and answers of payments. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.merchants.terms_schemas import ACCURACY_MAX_PERCENT, AcceptedMethod
from core.net.answers import Answer
from core.net.fields import CoinCode, CreatedAt, NetworkCode, NextCursor, OrderIdText, TxidText
from core.net.requests import (
    Amount,
    Code,
    CodeOrEmpty,
    Cursor,
    Email,
    Lookup,
    Moment,
    OrderId,
    Request,
    Text,
    UuidText,
    WebUrl,
    public_callback,
)

LIFETIME_MIN_S: Final = 300
LIFETIME_MAX_S: Final = 43_200
LIFETIME_DEFAULT_S: Final = 3_600


def clamp_lifetime(lifetime_s: int | None) -> int:
    """Return a lifetime within 300 to 43200 s; 3600 if none was given."""
    if lifetime_s is None:
        return LIFETIME_DEFAULT_S
    return max(LIFETIME_MIN_S, min(LIFETIME_MAX_S, lifetime_s))


class CreatePayment(Request, kw_only=True, omit_defaults=True):
    """An invoice to create (POST /v1/payment)."""

    refusals: ClassVar = {
        "amount": errors.PaymentBadAmount,
        "currency": errors.PaymentUnknownCurrency,
        "network": errors.PaymentUnsupportedNetwork,
        "to_currency": errors.PaymentUnknownToCurrency,
        "subtract": errors.PaymentBadSubtract,
        "accuracy_payment_percent": errors.PaymentBadAccuracy,
        "url_callback": errors.PaymentBadUrlCallback,
    }

    amount: Amount
    currency: Annotated[Code, Meta(description="The pricing currency: fiat or coin.", examples=["USD"])]
    order_id: OrderId | None = None
    network: Annotated[CodeOrEmpty, Meta(description="The settlement network.", examples=["ethereum"])] | None = None
    to_currency: (
        Annotated[
            CodeOrEmpty,
            Meta(description="The settlement coin; where only network is set, the currency.", examples=["USDT"]),
        ]
        | None
    ) = None
    lifetime: (
        Annotated[int, Meta(description="Seconds, clamped to 300 to 43200; 3600 without it.", examples=[3600])] | None
    ) = None
    subtract: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=100,
                description="Percent of the network fee that the payer bears.",
                extra_json_schema={"deprecated": True},
            ),
        ]
        | None
    ) = None
    accuracy_payment_percent: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=ACCURACY_MAX_PERCENT,
                description="Tolerated difference in percent, at most 4 fractional digits; overrides the merchant's.",
                extra_json_schema={"multipleOf": 0.0001},
            ),
        ]
        | None
    ) = None
    url_callback: (
        Annotated[
            WebUrl,
            Meta(
                description="Receives this invoice's webhooks; public http(s), needs a registered endpoint. A host in"
                " Unicode is kept as its punycode."
            ),
        ]
        | None
    ) = None
    url_return: WebUrl | None = None
    url_success: WebUrl | None = None
    additional_data: (
        Annotated[Text, Meta(max_length=4096, description="Private; echoed in webhooks, never shown to the buyer.")]
        | None
    ) = None
    payer_email: Annotated[Email, Meta(description="The buyer's address, for the receipt.")] | None = None
    theme: Annotated[Literal["dark", "light", ""], Meta(description="How the payment page looks.")] | None = None
    is_payment_multiple: Annotated[bool, Meta(description="The page invites the buyer to pay a remainder.")] = False
    is_refresh: Annotated[bool, Meta(description="Revive an expired invoice of this order_id.")] = False

    def check(self, own_hosts: frozenset[str]) -> None:
        """Clamp the lifetime, and refuse a callback that is not public."""
        self.lifetime = clamp_lifetime(self.lifetime)
        self.url_callback = public_callback(self.url_callback, own_hosts, errors.PaymentBadUrlCallback)


class PaymentLookup(Lookup, kw_only=True, omit_defaults=True):
    """Which payment is meant: by uuid, or else by order_id."""

    refusals: ClassVar = {"uuid": errors.PaymentBadUuid}
    unnamed: ClassVar = errors.PaymentNoLookup


class MethodChoice(Request, kw_only=True, omit_defaults=True):
    """The buyer's choice (POST /v1/pay/{id}/select)."""

    refusals: ClassVar = {"currency": errors.PayUnknownCurrency, "network": errors.PayMethodNotAccepted}

    currency: Annotated[Code, Meta(description="The coin to pay in.")]
    network: Annotated[CodeOrEmpty, Meta(description="May be left out where the coin has one network.")] | None = None


class SelectMethod(Struct, kw_only=True):
    """The message that carries a choice to its actor, with the invoice that the path named."""

    invoice_id: UUID
    currency: str
    network: str | None


class PublicPayment(Answer, kw_only=True):
    """A payment as its buyer sees it."""

    uuid: Annotated[UuidText, Meta(description="The payment's identifier.")]
    order_id: OrderIdText
    amount: Annotated[str, Meta(description="The price in currency.", examples=["125.50"])]
    payment_amount: Annotated[
        str | None, Meta(description="The confirmed sum, in payer_currency; null before the first confirmation.")
    ]
    amount_paid: Annotated[str, Meta(description="Detected so far, in payer_currency; empty before a coin is chosen.")]
    amount_remaining: Annotated[str, Meta(description="Still due, in payer_currency; empty before a coin is chosen.")]
    payer_amount: Annotated[str, Meta(description="What the buyer owes in payer_currency; empty before the choice.")]
    payer_currency: Annotated[str, Meta(description="The settlement coin; empty before it is chosen.")]
    currency: Annotated[str, Meta(description="The pricing currency.", examples=["USD"])]
    network: Annotated[str, Meta(description="The settlement network; empty before a coin is chosen.")]
    address: Annotated[str, Meta(description="The deposit address; empty before a coin is chosen.")]
    address_qr_code: Annotated[str, Meta(description="A PNG data URI of the address.")]
    payment_status: Annotated[
        Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"],
        Meta(
            description="select: the buyer has yet to choose a coin; check: awaits payment; paid, paid_over: within"
            " tolerance, above it; wrong_amount: short, or late; expired: nothing came in time."
        ),
    ]
    is_multi: Annotated[bool, Meta(description="Whether the buyer picks coin and network.")]
    url: Annotated[str, Meta(description="The hosted payment page.")]
    expired_at: Annotated[int, Meta(description="When it expires, in Unix seconds.", examples=[1764000000])]
    rate_expires_at: Annotated[
        int, Meta(description="Until when the quote holds, in Unix seconds.", examples=[1763997300])
    ]
    is_final: Annotated[
        bool, Meta(description="Whether the status is final. A late deposit, a reorg and is_refresh open it again.")
    ]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    updated_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    url_return: Annotated[str, Meta(description="Where the page's link back to the shop leads; empty without one.")]
    url_success: Annotated[str, Meta(description="Where the page leads once it is paid; empty without one.")]
    confirmations: Annotated[
        int, Meta(description="Blocks on top of the deposits', of the one that counts last; 0 before the first.")
    ]
    required_confirmations: Annotated[
        int,
        Meta(description="Confirmations from which deposits count, 100 for a block reward; 0 before a coin is chosen."),
    ]
    txid: TxidText
    accepted: Annotated[
        list[AcceptedMethod] | UnsetType,
        Meta(description="What the buyer may choose; only while the status is select."),
    ] = UNSET


class Payment(PublicPayment, kw_only=True):
    """A payment as its merchant sees it."""

    additional_data: Annotated[str, Meta(description="Private; as it was given.")]
    payer_email: Annotated[str, Meta(description="The buyer's address; empty where none was given.")]
    payer_address: Annotated[str, Meta(description="The sender; empty where a network has no single one.")]


class Refund(Answer, kw_only=True):
    """A refund of a payment, or of a stray deposit to its address."""

    uuid: Annotated[UuidText, Meta(description="The refund's identifier; that of its payout.")]
    status: Annotated[
        str, Meta(description="That of its payout: check, awaiting_cosign, process, paid, fail or cancel.")
    ]
    amount: Annotated[str, Meta(description="What arrives, in the refund's coin.")]
    address: Annotated[str, Meta(description="Where it goes.")]
    txid: TxidText
    is_final: Annotated[bool, Meta(description="true for paid, fail and cancel.")]
    created_at: CreatedAt
    currency: Annotated[str | UnsetType, Meta(description="Only of a stray's, with its network.")] = UNSET
    network: Annotated[str | UnsetType, Meta(description="Only of a stray's: the network that carries it.")] = UNSET


class StrayDeposit(Answer, kw_only=True):
    """A deposit of another asset, on another network, or too small to count."""

    txid: Annotated[str, Meta(description="The transaction's hash.")]
    currency: Annotated[str, Meta(description="The coin that came.")]
    network: Annotated[str, Meta(description="The network over which it came.")]
    amount: Annotated[str, Meta(description="What came, in its coin.")]
    status: Annotated[
        str, Meta(description="refunding and refunded: it is being sent back, or was.", examples=["confirmed"])
    ]
    reason: Annotated[
        Literal["asset", "network", "dust"],
        Meta(description="asset: another coin; network: another network; dust: below the network's smallest deposit."),
    ]


class PaymentInfo(Payment, kw_only=True):
    """A payment with what was refunded of it and what strayed to its address."""

    revision: Annotated[
        int,
        Meta(description="Counts the events of payment_status, as their bodies do; 0 before the first.", examples=[1]),
    ]
    refund_status: Annotated[
        Literal["none", "partial", "full"], Meta(description="Pending refunds count; failed and cancelled ones do not.")
    ]
    refunds: Annotated[list[Refund], Meta(description="Oldest first; of more than 1000, the newest.")]
    stray_deposits: Annotated[
        list[StrayDeposit], Meta(description="What came to its address and does not count, oldest first.")
    ]


class PaymentHistory(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payments, newest first (POST /v1/payment/history)."""

    refusals: ClassVar = {
        "cursor": errors.PaymentBadCursor,
        "date_from": errors.PaymentBadDate,
        "date_to": errors.PaymentBadDate,
    }

    limit: Annotated[int, Meta(description="Items shown: 1 to 200; anything else is 50.")] | None = None
    cursor: Cursor | None = None
    status: (
        Annotated[
            Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired", ""],
            Meta(description="The payment_status; any without it."),
        ]
        | None
    ) = None
    currency: Annotated[CodeOrEmpty, Meta(description="The pricing currency.")] | None = None
    network: Annotated[CodeOrEmpty, Meta(description="The settlement network.")] | None = None
    order_id: Annotated[Text, Meta(max_length=255, description="The merchant's reference.")] | None = None
    date_from: Annotated[Moment, Meta(description="Created at or after.")] | None = None
    date_to: Annotated[Moment, Meta(description="Created before; a day alone is included.")] | None = None


class PaymentPage(Answer, kw_only=True):
    """Payments, and where the next page begins."""

    items: Annotated[list[Payment], Meta(description="Newest first.")]
    next_cursor: NextCursor


class ResolvePayment(PaymentLookup, kw_only=True, omit_defaults=True):
    """What becomes of a wrong_amount payment or of a stray deposit (POST /v1/payment/resolve)."""

    refusals: ClassVar = {
        "uuid": errors.PaymentBadUuid,
        "action": errors.PaymentBadAction,
        "address": errors.RefundBadAddress,
        "network": errors.RefundNetworkMismatch,
    }

    action: Annotated[
        Literal["accept", "refund"],
        Meta(description="accept credits what is there; refund sends it back, less the network fee."),
    ]
    txid: Annotated[Text, Meta(max_length=128, description="The stray deposit that is meant.")] | None = None
    address: (
        Annotated[
            Text,
            Meta(
                max_length=128,
                description="For a refund: where to, if not to whoever paid. It has to be approved then.",
                examples=["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"],
            ),
        ]
        | None
    ) = None
    network: Annotated[CodeOrEmpty, Meta(description="For a refund: that of the money, if any.")] | None = None


class SendPaymentEmail(PaymentLookup, kw_only=True, omit_defaults=True):
    """Which payment is e-mailed of, and to whom (POST /v1/payment/send-email)."""

    refusals: ClassVar = {"uuid": errors.PaymentBadUuid, "email": errors.EmailBadAddress}

    email: Annotated[Email, Meta(description="Who it goes to; without it the payment's payer_email.")] | None = None


class QueuedEmail(Answer, kw_only=True):
    """An e-mail that waits to be sent."""

    email: Annotated[str, Meta(description="The address that it goes to.", examples=["buyer@mail.example"])]
    queued: Annotated[
        bool, Meta(description="Always true: it is written, and is sent in the background.", examples=[True])
    ]


class QueuedDelivery(Answer, kw_only=True):
    """A webhook that was queued again."""

    delivery_id: Annotated[str, Meta(description="The X-Webhook-Id of every attempt.")]
    event: Annotated[str, Meta(description="The event's name.")]
    status: Annotated[str, Meta(description="pending: it waits for its next attempt.")]


class Resent(Answer, kw_only=True):
    """The webhooks of a payment's latest status, queued again; none if no event has come yet."""

    deliveries: Annotated[list[QueuedDelivery], Meta(description="Those that are sent again.")]


class Image(Answer, kw_only=True):
    """A QR code."""

    image: Annotated[str, Meta(description="A PNG data URI.")]


class MethodLimit(Answer, kw_only=True):
    """The smallest and largest amount, in the coin."""

    min_amount: Annotated[str, Meta(description="In the coin.")]
    max_amount: Annotated[str | None, Meta(description="In the coin; null while it has no rate.")]


class MethodCommission(Answer, kw_only=True):
    """What the gateway takes."""

    percent: Annotated[str, Meta(description="Percent of what is credited.")]
    fixed_usd: Annotated[str, Meta(description="US dollars, once for a payment.")]


class PaymentMethod(Answer, kw_only=True):
    """A coin on a network, as the calling merchant may be paid in it."""

    currency: CoinCode
    network: NetworkCode
    is_available: Annotated[bool, Meta(description="Whether it can be paid in now.")]
    limit: Annotated[MethodLimit, Meta(description="What can be paid.")]
    commission: Annotated[MethodCommission, Meta(description="The merchant's platform fee.")]
    confirmations: Annotated[int, Meta(description="Confirmations from which a deposit counts.")]
    discount_percent: Annotated[float, Meta(description="Percent off the price; less than 0 raises it.")]


class PaymentServices(Answer, kw_only=True):
    """Every method of the catalogue."""

    items: Annotated[list[PaymentMethod], Meta(description="One for each coin on a network.")]

"""Declares requests and answers of payments. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.requests import (
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
    check_callback,
)
from core.merchants.terms_schemas import ACCURACY_MAX_PERCENT, AcceptedMethod

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
    lifetime: Annotated[int, Meta(description="Seconds, clamped to 300 to 43200.", examples=[3600])] | None = None
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
            WebUrl, Meta(description="Receives this invoice's webhooks; public http(s), needs a registered endpoint.")
        ]
        | None
    ) = None
    url_return: WebUrl | None = None
    url_success: WebUrl | None = None
    additional_data: (
        Annotated[Text, Meta(max_length=4096, description="Private; echoed in webhooks, never shown to the buyer.")]
        | None
    ) = None
    payer_email: Email | None = None
    theme: Literal["dark", "light", ""] | None = None
    is_payment_multiple: Annotated[bool, Meta(description="The page invites the buyer to pay a remainder.")] = False
    is_refresh: Annotated[bool, Meta(description="Revive an expired invoice of this order_id.")] = False

    def check(self, own_hosts: frozenset[str]) -> None:
        """Clamp the lifetime, and refuse a callback that is not public."""
        self.lifetime = clamp_lifetime(self.lifetime)
        check_callback(self.url_callback, own_hosts, errors.PaymentBadUrlCallback)


class PaymentLookup(Lookup, kw_only=True, omit_defaults=True):
    """Which payment is meant: by uuid, or else by order_id."""

    refusals: ClassVar = {"uuid": errors.PaymentBadUuid}
    unnamed: ClassVar = errors.PaymentNoLookup


class MethodChoice(Request, kw_only=True, omit_defaults=True):
    """The buyer's choice (POST /v1/pay/{id}/select)."""

    refusals: ClassVar = {"currency": errors.PayUnknownCurrency, "network": errors.PayMethodNotAccepted}

    currency: Code
    network: Annotated[CodeOrEmpty, Meta(description="May be left out where the coin has one network.")] | None = None


class SelectMethod(Struct, kw_only=True):
    """The message that carries a choice to its actor, with the invoice that the path named."""

    invoice_id: UUID
    currency: str
    network: str | None


class PublicPayment(Answer, kw_only=True):
    """A payment as its buyer sees it."""

    uuid: Annotated[UuidText, Meta(description="The payment's identifier.")]
    order_id: str
    amount: Annotated[str, Meta(description="The price in currency.", examples=["125.50"])]
    payment_amount: Annotated[str | None, Meta(description="The confirmed sum; null before the first confirmation.")]
    amount_paid: Annotated[str, Meta(description="Detected so far; empty before a coin is chosen.")]
    amount_remaining: Annotated[str, Meta(description="Still due; empty before a coin is chosen.")]
    payer_amount: Annotated[str, Meta(description="What the buyer owes in payer_currency; empty before the choice.")]
    payer_currency: Annotated[str, Meta(description="The settlement coin; empty before it is chosen.")]
    currency: Annotated[str, Meta(description="The pricing currency.", examples=["USD"])]
    network: str
    address: Annotated[str, Meta(description="The deposit address; empty before a coin is chosen.")]
    address_qr_code: Annotated[str, Meta(description="A PNG data URI of the address.")]
    payment_status: Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"]
    is_multi: Annotated[bool, Meta(description="Whether the buyer picks coin and network.")]
    url: Annotated[str, Meta(description="The hosted payment page.")]
    expired_at: Annotated[int, Meta(description="Unix seconds.", examples=[1764000000])]
    rate_expires_at: Annotated[int, Meta(description="Unix seconds.", examples=[1763997300])]
    is_final: bool
    created_at: Annotated[str, Meta(description="ISO 8601.", examples=["2026-01-31T12:00:00.000Z"])]
    updated_at: Annotated[str, Meta(description="ISO 8601.", examples=["2026-01-31T12:00:00.000Z"])]
    url_return: str
    url_success: str
    confirmations: int
    required_confirmations: int
    txid: str
    accepted: Annotated[
        list[AcceptedMethod] | UnsetType,
        Meta(description="What the buyer may choose; only while the status is select."),
    ] = UNSET


class Payment(PublicPayment, kw_only=True):
    """A payment as its merchant sees it."""

    additional_data: str
    payer_email: str
    payer_address: Annotated[str, Meta(description="The sender; empty where a network has no single one.")]


class Refund(Answer, kw_only=True):
    """A refund of a payment, or of a stray deposit to its address."""

    uuid: UuidText
    status: str
    amount: str
    address: str
    txid: str
    is_final: bool
    created_at: str
    currency: Annotated[str | UnsetType, Meta(description="Only of a stray's, with its network.")] = UNSET
    network: str | UnsetType = UNSET


class StrayDeposit(Answer, kw_only=True):
    """A deposit of another asset, on another network, or too small to count."""

    txid: str
    currency: str
    network: str
    amount: str
    status: Annotated[
        str, Meta(description="refunding and refunded: it is being sent back, or was.", examples=["confirmed"])
    ]
    reason: Literal["asset", "network", "dust"]


class PaymentInfo(Payment, kw_only=True):
    """A payment with what was refunded of it and what strayed to its address."""

    refund_status: Annotated[
        Literal["none", "partial", "full"], Meta(description="Pending refunds count; failed and cancelled ones do not.")
    ]
    refunds: Annotated[list[Refund], Meta(description="Oldest first; of more than 1000, the newest.")]
    stray_deposits: list[StrayDeposit]


class PaymentHistory(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payments, newest first (POST /v1/payment/history)."""

    refusals: ClassVar = {
        "cursor": errors.PaymentBadCursor,
        "date_from": errors.PaymentBadDate,
        "date_to": errors.PaymentBadDate,
    }

    limit: Annotated[int, Meta(description="1 to 200; anything else is 50.")] | None = None
    cursor: Cursor | None = None
    status: Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired", ""] | None = None
    currency: Annotated[CodeOrEmpty, Meta(description="The pricing currency.")] | None = None
    network: CodeOrEmpty | None = None
    order_id: Annotated[Text, Meta(max_length=255)] | None = None
    date_from: Annotated[Moment, Meta(description="Created at or after.")] | None = None
    date_to: Annotated[Moment, Meta(description="Created before.")] | None = None


class PaymentPage(Answer, kw_only=True):
    """Payments, and where the next page begins."""

    items: list[Payment]
    next_cursor: str | None


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


class QueuedDelivery(Answer, kw_only=True):
    """A webhook that was queued again."""

    delivery_id: str
    event: str
    status: str


class Resent(Answer, kw_only=True):
    """The webhooks of a payment's latest status, queued again; none if no event has come yet."""

    deliveries: list[QueuedDelivery]


class Image(Answer, kw_only=True):
    """A QR code."""

    image: Annotated[str, Meta(description="A PNG data URI.")]


class MethodLimit(Answer, kw_only=True):
    """The smallest and largest amount, in the coin."""

    min_amount: str
    max_amount: Annotated[str | None, Meta(description="null while the coin has no rate.")]


class MethodCommission(Answer, kw_only=True):
    """What the gateway takes."""

    percent: str
    fixed_usd: str


class PaymentMethod(Answer, kw_only=True):
    """A coin on a network, as the calling merchant may be paid in it."""

    currency: str
    network: str
    is_available: bool
    limit: MethodLimit
    commission: MethodCommission
    confirmations: int
    discount_percent: float


class PaymentServices(Answer, kw_only=True):
    """Every method of the catalogue."""

    items: list[PaymentMethod]

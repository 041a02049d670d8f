"""Declares requests and answers of payments. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.fields import CoinCode, CreatedAt, NetworkCode, NextCursor, OrderIdText, TxidText
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
    public_callback,
)
from core.merchants.terms_schemas import ACCURACY_MAX_PERCENT, AcceptedMethod

LIFETIME_MIN_S: Final = 300
LIFETIME_MAX_S: Final = 43_200


def clamp_lifetime(lifetime_s: int) -> int:
    """Return a lifetime within 300 to 43200 s."""
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
    currency: Annotated[
        Code, Meta(description="The currency of the price: a fiat currency or a coin.", examples=["USD"])
    ]
    order_id: OrderId | None = None
    network: (
        Annotated[
            CodeOrEmpty,
            Meta(
                description="The network that the buyer pays on. Without it the buyer chooses.", examples=["ethereum"]
            ),
        ]
        | None
    ) = None
    to_currency: (
        Annotated[
            CodeOrEmpty,
            Meta(
                description="The coin that the buyer pays in. Without it the buyer chooses; if only network is set,"
                " it is currency.",
                examples=["USDT"],
            ),
        ]
        | None
    ) = None
    lifetime: (
        Annotated[
            int,
            Meta(
                description="Seconds until the payment expires: 300 to 43200. A value outside is set to the nearest"
                " limit. Default: 3600, unless the gateway's operator chose another.",
                examples=[3600],
            ),
        ]
        | None
    ) = None
    subtract: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=100,
                description="Percent of the network fee that the payer bears, from 0 to 100.",
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
                description="Tolerated difference from the amount, in percent: 0 to 5, at most 4 fractional digits."
                " Default: your account's setting.",
                extra_json_schema={"multipleOf": 0.0001},
            ),
        ]
        | None
    ) = None
    url_callback: (
        Annotated[
            WebUrl,
            Meta(
                description="URL that receives this payment's webhooks instead of your registered endpoint, which you"
                " still need. Public http or https. A host in Unicode is stored as punycode."
            ),
        ]
        | None
    ) = None
    url_return: WebUrl | None = None
    url_success: WebUrl | None = None
    additional_data: (
        Annotated[
            Text,
            Meta(
                max_length=4096,
                description="Your private text, at most 4096 characters. Webhooks repeat it; the buyer never sees it.",
            ),
        ]
        | None
    ) = None
    payer_email: Annotated[Email, Meta(description="The buyer's e-mail address, for the receipt.")] | None = None
    theme: Annotated[Literal["dark", "light", ""], Meta(description="The theme of the payment page.")] | None = None
    is_payment_multiple: Annotated[
        bool,
        Meta(description="true: the payment page asks the buyer for the rest of an incomplete payment. Default false."),
    ] = False
    is_refresh: Annotated[
        bool, Meta(description="true: reopen the expired payment of this order_id. Default false.")
    ] = False

    def check(self, own_hosts: frozenset[str]) -> None:
        """Clamp the lifetime, and refuse a callback that is not public."""
        if self.lifetime is not None:
            self.lifetime = clamp_lifetime(self.lifetime)
        self.url_callback = public_callback(self.url_callback, own_hosts, errors.PaymentBadUrlCallback)

    def lifetime_s(self, default_s: int) -> int:
        """Return the payment's lifetime; the gateway's default if none was asked for."""
        return default_s if self.lifetime is None else clamp_lifetime(self.lifetime)


class PaymentLookup(Lookup, kw_only=True, omit_defaults=True):
    """The payment, by uuid or else by order_id."""

    refusals: ClassVar = {"uuid": errors.PaymentBadUuid}
    unnamed: ClassVar = errors.PaymentNoLookup


class MethodChoice(Request, kw_only=True, omit_defaults=True):
    """The coin and network that a buyer chooses (POST /v1/pay/{id}/select)."""

    refusals: ClassVar = {"currency": errors.PayUnknownCurrency, "network": errors.PayMethodNotAccepted}

    currency: Annotated[Code, Meta(description="The coin to pay in.")]
    network: (
        Annotated[CodeOrEmpty, Meta(description="The network to pay on. May be omitted if the coin has only one.")]
        | None
    ) = None


class SelectMethod(Struct, kw_only=True):
    """The message that carries a choice to its actor, with the invoice that the path named."""

    invoice_id: UUID
    currency: str
    network: str | None


class PublicPayment(Answer, kw_only=True):
    """A payment as its buyer sees it."""

    uuid: Annotated[UuidText, Meta(description="The payment's identifier.")]
    order_id: OrderIdText
    amount: Annotated[str, Meta(description="The price, in currency.", examples=["125.50"])]
    payment_amount: Annotated[
        str | None, Meta(description="The sum of confirmed deposits, in payer_currency; null before the first one.")
    ]
    amount_paid: Annotated[
        str, Meta(description="The sum detected so far, in payer_currency; empty before a coin is chosen.")
    ]
    amount_remaining: Annotated[
        str, Meta(description="The sum still due, in payer_currency; empty before a coin is chosen.")
    ]
    payer_amount: Annotated[
        str, Meta(description="The amount to pay, in payer_currency; empty before a coin is chosen.")
    ]
    payer_currency: Annotated[str, Meta(description="The coin that the buyer pays in; empty before it is chosen.")]
    currency: Annotated[str, Meta(description="The currency of the price.", examples=["USD"])]
    network: Annotated[str, Meta(description="The network that the buyer pays on; empty before a coin is chosen.")]
    address: Annotated[str, Meta(description="The address to pay to; empty before a coin is chosen.")]
    address_qr_code: Annotated[str, Meta(description="The QR code of the address, as a PNG data URI.")]
    payment_status: Annotated[
        Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"],
        Meta(
            description="select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount"
            " is right; paid_over: more than the amount was paid; wrong_amount: too little was paid,"
            " or too late; expired: nothing was paid in time."
        ),
    ]
    is_multi: Annotated[bool, Meta(description="true if the buyer chooses coin and network.")]
    url: Annotated[str, Meta(description="The hosted payment page.")]
    expired_at: Annotated[int, Meta(description="The time of expiry, in Unix seconds.", examples=[1764000000])]
    rate_expires_at: Annotated[
        int, Meta(description="The time until which payer_amount is valid, in Unix seconds.", examples=[1763997300])
    ]
    is_final: Annotated[
        bool,
        Meta(description="true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment."),
    ]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    updated_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    url_return: Annotated[
        str, Meta(description="The URL of the payment page's link back to your shop; empty if you set none.")
    ]
    url_success: Annotated[
        str, Meta(description="The URL that the payment page leads to once it is paid; empty if you set none.")
    ]
    confirmations: Annotated[
        int, Meta(description="Confirmations of the newest deposit that counts; 0 before the first deposit.")
    ]
    required_confirmations: Annotated[
        int,
        Meta(
            description="Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is"
            " chosen."
        ),
    ]
    txid: TxidText
    accepted: Annotated[
        list[AcceptedMethod] | UnsetType,
        Meta(description="The methods that the buyer may choose; only while the status is select."),
    ] = UNSET


class Payment(PublicPayment, kw_only=True):
    """A payment as its merchant sees it."""

    additional_data: Annotated[str, Meta(description="Your private text, as you sent it.")]
    payer_email: Annotated[str, Meta(description="The buyer's e-mail address; empty if it is unknown.")]
    payer_address: Annotated[
        str, Meta(description="The sender's address; empty on networks where a transaction can have several senders.")
    ]


class Refund(Answer, kw_only=True):
    """A refund of a payment, or of a stray deposit to its address."""

    uuid: Annotated[UuidText, Meta(description="The refund's identifier, which is also its payout's.")]
    status: Annotated[
        str, Meta(description="The status of its payout: check, awaiting_cosign, process, paid, fail or cancel.")
    ]
    amount: Annotated[str, Meta(description="The amount that the recipient gets, in the refund's coin.")]
    address: Annotated[str, Meta(description="The recipient's address.")]
    txid: TxidText
    is_final: Annotated[bool, Meta(description="true if the status is paid, fail or cancel.")]
    created_at: CreatedAt
    currency: Annotated[str | UnsetType, Meta(description="The coin; only in the refund of a stray deposit.")] = UNSET
    network: Annotated[str | UnsetType, Meta(description="The network; only in the refund of a stray deposit.")] = UNSET


class StrayDeposit(Answer, kw_only=True):
    """A deposit of another asset, on another network, or too small to count."""

    txid: Annotated[str, Meta(description="The transaction's hash.")]
    currency: Annotated[str, Meta(description="The coin that was received.")]
    network: Annotated[str, Meta(description="The network on which it was received.")]
    amount: Annotated[str, Meta(description="The amount received, in its coin.")]
    status: Annotated[
        str,
        Meta(
            description="The state of the deposit. refunding: a refund is being sent; refunded: the refund was sent.",
            examples=["confirmed"],
        ),
    ]
    reason: Annotated[
        Literal["asset", "network", "dust"],
        Meta(description="asset: another coin; network: another network; dust: below the network's smallest deposit."),
    ]


class PaymentInfo(Payment, kw_only=True):
    """A payment with what was refunded of it and what strayed to its address."""

    revision: Annotated[
        int,
        Meta(
            description="The number of changes of payment_status so far; webhook bodies have the same number. 0"
            " before the first change.",
            examples=[1],
        ),
    ]
    refund_status: Annotated[
        Literal["none", "partial", "full"],
        Meta(description="The refunded part. Pending refunds count; failed and cancelled ones do not."),
    ]
    refunds: Annotated[list[Refund], Meta(description="Its refunds, oldest first; only the newest 1000.")]
    stray_deposits: Annotated[
        list[StrayDeposit], Meta(description="Deposits to its address that do not count, oldest first.")
    ]


class PaymentHistory(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payments, newest first (POST /v1/payment/history)."""

    refusals: ClassVar = {
        "cursor": errors.PaymentBadCursor,
        "date_from": errors.PaymentBadDate,
        "date_to": errors.PaymentBadDate,
    }

    limit: (
        Annotated[int, Meta(description="The number of items on a page: 1 to 200. Any other value means 50.")] | None
    ) = None
    cursor: Cursor | None = None
    status: (
        Annotated[
            Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired", ""],
            Meta(description="Only payments with this payment_status. Default: all."),
        ]
        | None
    ) = None
    currency: Annotated[CodeOrEmpty, Meta(description="The currency of the price.")] | None = None
    network: (
        Annotated[CodeOrEmpty, Meta(description="The network that the buyer pays on. Without it the buyer chooses.")]
        | None
    ) = None
    order_id: Annotated[Text, Meta(max_length=255, description="Only payments with this order_id.")] | None = None
    date_from: Annotated[Moment, Meta(description="Only those created at this time or later.")] | None = None
    date_to: (
        Annotated[
            Moment, Meta(description="Only those created before this time. A date without time includes that day.")
        ]
        | None
    ) = None


class PaymentPage(Answer, kw_only=True):
    """Payments, and where the next page begins."""

    items: Annotated[list[Payment], Meta(description="Newest first.")]
    next_cursor: NextCursor


class ResolvePayment(PaymentLookup, kw_only=True, omit_defaults=True):
    """Your decision on a wrong_amount payment or a stray deposit (POST /v1/payment/resolve)."""

    refusals: ClassVar = {
        "uuid": errors.PaymentBadUuid,
        "action": errors.PaymentBadAction,
        "address": errors.RefundBadAddress,
        "network": errors.RefundNetworkMismatch,
    }

    action: Annotated[
        Literal["accept", "refund"],
        Meta(description="accept: credit the received amount; refund: send it back, less the network fee."),
    ]
    txid: (
        Annotated[Text, Meta(max_length=128, description="The transaction of the stray deposit to decide on.")] | None
    ) = None
    address: (
        Annotated[
            Text,
            Meta(
                max_length=128,
                description="For a refund: the recipient's address. Default: the payer's. Any other address needs an"
                " approval.",
                examples=["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"],
            ),
        ]
        | None
    ) = None
    network: (
        Annotated[CodeOrEmpty, Meta(description="For a refund: must be the deposit's network, if you send it.")] | None
    ) = None


class SendPaymentEmail(PaymentLookup, kw_only=True, omit_defaults=True):
    """A payment whose details are sent by e-mail (POST /v1/payment/send-email)."""

    refusals: ClassVar = {"uuid": errors.PaymentBadUuid, "email": errors.EmailBadAddress}

    email: (
        Annotated[Email, Meta(description="The recipient's e-mail address. Default: the payment's payer_email.")] | None
    ) = None


class QueuedEmail(Answer, kw_only=True):
    """An e-mail that waits to be sent."""

    email: Annotated[str, Meta(description="The recipient's e-mail address.", examples=["buyer@mail.example"])]
    queued: Annotated[
        bool, Meta(description="Always true: the e-mail is stored, and is sent in the background.", examples=[True])
    ]


class QueuedDelivery(Answer, kw_only=True):
    """A webhook that was queued again."""

    delivery_id: Annotated[
        str, Meta(description="The delivery's identifier, which is the X-Webhook-Id of every attempt.")
    ]
    event: Annotated[str, Meta(description="The event's name.")]
    status: Annotated[str, Meta(description="pending: the delivery waits for its next attempt.")]


class Resent(Answer, kw_only=True):
    """The webhooks of a payment's latest status, queued again; empty before the first event."""

    deliveries: Annotated[list[QueuedDelivery], Meta(description="The deliveries that are sent again.")]


class Image(Answer, kw_only=True):
    """A QR code."""

    image: Annotated[str, Meta(description="The QR code, as a PNG data URI.")]


class MethodLimit(Answer, kw_only=True):
    """The smallest and largest amount, in the coin."""

    min_amount: Annotated[str, Meta(description="The amount, in the coin.")]
    max_amount: Annotated[str | None, Meta(description="The amount, in the coin; null while the coin has no rate.")]


class MethodCommission(Answer, kw_only=True):
    """The gateway's fee."""

    percent: Annotated[str, Meta(description="Percent of the credited amount.")]
    fixed_usd: Annotated[str, Meta(description="US dollars, once for each payment.")]


class PaymentMethod(Answer, kw_only=True):
    """A coin on a network, with your terms for payments in it."""

    currency: CoinCode
    network: NetworkCode
    is_available: Annotated[bool, Meta(description="true if payments in it are possible now.")]
    limit: Annotated[MethodLimit, Meta(description="The smallest and largest payment.")]
    commission: Annotated[MethodCommission, Meta(description="The gateway's fee for your account.")]
    confirmations: Annotated[int, Meta(description="Confirmations that a deposit needs to count.")]
    discount_percent: Annotated[float, Meta(description="Percent off the price. A negative value raises the price.")]


class PaymentServices(Answer, kw_only=True):
    """Every method of the catalogue."""

    items: Annotated[list[PaymentMethod], Meta(description="One item for each coin on a network.")]

"""Requests and answers of what merchants do with payments after creating them. Read as core.http.requests is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from core.errors import (
    DomainError,
    PaymentBadAction,
    PaymentBadCursor,
    PaymentBadDate,
    PaymentBadUuid,
    RefundBadAddress,
    RefundNetworkMismatch,
)
from core.http.answers import Answer, Payment
from core.http.requests import CodeOrEmpty, PaymentLookup, Request, Text

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200

Moment = Annotated[str, Meta(max_length=40, description="ISO 8601.", examples=["2026-01-31T12:00:00Z"])]
Cursor = Annotated[str, Meta(max_length=128, description="next_cursor of the page before.")]


def page_size(limit: int | None) -> int:
    """Return a list's limit; anything outside 1 to 200 is 50."""
    return limit if limit is not None and 1 <= limit <= PAGE_MAX else PAGE_DEFAULT


class PaymentHistory(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payments, newest first (POST /v1/payment/history)."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType(
        {"cursor": PaymentBadCursor, "date_from": PaymentBadDate, "date_to": PaymentBadDate}
    )

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

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType(
        {
            "uuid": PaymentBadUuid,
            "action": PaymentBadAction,
            "address": RefundBadAddress,
            "network": RefundNetworkMismatch,
        }
    )

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
    """The webhooks of a payment's latest status, queued again; none where no event has come yet."""

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

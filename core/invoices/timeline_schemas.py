"""Declares what a payment's timeline answers: its events, and what the detail of each may hold.

Used by api.routes.invoices.timeline and models.invoices.timeline.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from core.net.answers import Answer

EventName = Literal[
    "created",
    "selected",
    "quoted",
    "detected",
    "confirmation",
    "resolved",
    "credited",
    "reorged",
    "expired",
    "refunded",
    "webhook",
]
EVENTS: Final[tuple[EventName, ...]] = get_args(EventName)
"""In the order in which those of one moment are told."""

_ISO: Final[dict[str, Any]] = {"format": "date-time"}
_Moment = Annotated[str, Meta(examples=["2026-01-31T12:00:00.000Z"], extra_json_schema=_ISO)]
_Amount = Annotated[str, Meta(examples=["125.5628"])]


class TimelineDetail(Answer, kw_only=True, omit_defaults=True):
    """What an event says; what does not apply to it is absent."""

    amount: Annotated[
        _Amount | UnsetType, Meta(description="created: the price; else that of the deposit or refund, in currency.")
    ] = UNSET
    currency: Annotated[
        str | UnsetType, Meta(description="The coin of the sums; created: the pricing currency.", examples=["USDT"])
    ] = UNSET
    network: Annotated[
        str | UnsetType, Meta(description="The network of the coin, deposit or refund.", examples=["ethereum"])
    ] = UNSET
    txid: Annotated[str | UnsetType, Meta(description="The transaction; of a refund, empty before there is one.")] = (
        UNSET
    )
    block_height: Annotated[int | UnsetType, Meta(description="How many blocks came before the deposit's.")] = UNSET
    expired_at: Annotated[int | UnsetType, Meta(description="created: the expiry, in Unix seconds.")] = UNSET
    rate_expires_at: Annotated[
        int | UnsetType, Meta(description="quoted: until when its rate was to hold, in Unix seconds.")
    ] = UNSET
    generation: Annotated[
        int | UnsetType, Meta(description="quoted: counts the quotes of the payment from 1.", examples=[1])
    ] = UNSET
    payer_amount: Annotated[
        _Amount | UnsetType, Meta(description="quoted, expired, resolved: what the buyer owes, in currency.")
    ] = UNSET
    payment_amount: Annotated[
        str | UnsetType, Meta(description="expired, resolved: the confirmed sum, in currency.", examples=["125"])
    ] = UNSET
    amount_paid: Annotated[
        str | UnsetType, Meta(description="expired, resolved: the sum detected so far, in currency.", examples=["125"])
    ] = UNSET
    amount_remaining: Annotated[
        str | UnsetType,
        Meta(description="expired, resolved: what lacked then, in currency.", examples=["0.5628"]),
    ] = UNSET
    seen_at: Annotated[
        _Moment | UnsetType,
        Meta(description="detected: the time by which the deposit is judged, its block's or an earlier one; ISO 8601."),
    ] = UNSET
    gone_at: Annotated[
        _Moment | UnsetType,
        Meta(description="detected: since when a payment that was in no block yet is nowhere any more; ISO 8601."),
    ] = UNSET
    is_late: Annotated[bool | UnsetType, Meta(description="detected: seen_at is after the payment's expiry.")] = UNSET
    stray_reason: Annotated[
        Literal["asset", "network", "dust"] | UnsetType,
        Meta(description="Why the deposit does not count: another asset, another network, or too small."),
    ] = UNSET
    depth: Annotated[
        str | UnsetType,
        Meta(description="confirmation: how many confirmations of how many that it takes.", examples=["3 of 12"]),
    ] = UNSET
    waiting_for: Annotated[
        Literal["block", "confirmations", "witnesses", "scan", "rest", "resolve", "rate"] | UnsetType,
        Meta(
            description=(
                "What the deposit waits for: its first block; confirmations; other providers that show the same; the"
                " scan of its network, which stands still; the rest of the sum; a call of /v1/payment/resolve. quoted:"
                " a rate."
            )
        ),
    ] = UNSET
    witness_reason: Annotated[
        Literal["amount", "unpriced", "hourly", "missing"] | UnsetType,
        Meta(
            description=(
                "Why one provider is not believed yet: the deposit is large; its coin has no rate; smaller ones used up"
                " the hour; a second reading of its block did not show it."
            )
        ),
    ] = UNSET
    witnesses: Annotated[
        str | UnsetType,
        Meta(
            description="What the providers said when last asked; empty before.",
            examples=["1 of 3 providers agree, 0 tell otherwise"],
        ),
    ] = UNSET
    net_amount: Annotated[_Amount | UnsetType, Meta(description="credited: what the merchant got, in currency.")] = (
        UNSET
    )
    fee: Annotated[
        str | UnsetType, Meta(description="credited: what the gateway took, in currency.", examples=["2.1834"])
    ] = UNSET
    status: Annotated[
        str | UnsetType,
        Meta(
            description=(
                "expired: what the payment became; reorged: what the deposit was; refunded and webhook: how the refund"
                " or the delivery is now."
            ),
            examples=["wrong_amount"],
        ),
    ] = UNSET
    reason: Annotated[
        Literal["unpaid", "short", "stray", "left_chain"] | UnsetType,
        Meta(
            description=(
                "expired: nothing that counts was confirmed, less than was asked, or strays alone; reorged: the block"
                " left the chain."
            )
        ),
    ] = UNSET
    detected_at: Annotated[_Moment | UnsetType, Meta(description="reorged: when the deposit was found; ISO 8601.")] = (
        UNSET
    )
    confirmed_at: Annotated[
        _Moment | UnsetType, Meta(description="reorged: when it was confirmed, if it was; ISO 8601.")
    ] = UNSET
    credited_at: Annotated[
        _Moment | UnsetType, Meta(description="reorged: when it was credited, if it was; ISO 8601.")
    ] = UNSET
    action: Annotated[
        Literal["accept", "refund"] | UnsetType, Meta(description="resolved: what the merchant decided.")
    ] = UNSET
    uuid: Annotated[str | UnsetType, Meta(description="resolved, refunded: the refund's identifier.")] = UNSET
    address: Annotated[str | UnsetType, Meta(description="resolved, refunded: where the refund goes.")] = UNSET
    ended_at: Annotated[_Moment | UnsetType, Meta(description="refunded: when the refund ended; ISO 8601.")] = UNSET
    error: Annotated[str | UnsetType, Meta(description="refunded: why the refund failed.")] = UNSET
    delivery_id: Annotated[str | UnsetType, Meta(description="webhook: the delivery, as /v1/webhooks lists it.")] = (
        UNSET
    )
    event: Annotated[
        str | UnsetType, Meta(description="webhook: what it told the merchant.", examples=["invoice.paid"])
    ] = UNSET
    attempts: Annotated[int | UnsetType, Meta(description="webhook: attempts so far.", examples=[1])] = UNSET
    last_status_code: Annotated[
        int | UnsetType, Meta(description="webhook: the HTTP status of the last attempt.", examples=[200])
    ] = UNSET
    last_error: Annotated[str | UnsetType, Meta(description="webhook: what was wrong with the last attempt.")] = UNSET
    delivered_at: Annotated[_Moment | UnsetType, Meta(description="webhook: when it was taken; ISO 8601.")] = UNSET


class TimelineEvent(Answer, kw_only=True):
    """Something that happened to a payment."""

    at: Annotated[_Moment, Meta(description="When; ISO 8601 in UTC.")]
    event: Annotated[EventName, Meta(description="What.")]
    detail: Annotated[TimelineDetail, Meta(description="Its sums, and what it waits for or lacks.")]


class Timeline(Answer, kw_only=True):
    """What happened to a payment."""

    items: Annotated[
        list[TimelineEvent],
        Meta(description="Oldest first; of more than 1000, created and the newest.", max_length=1000),
    ]

"""Declares what a payment's timeline answers: its events, and what the detail of each may hold.

Used by api.routes.invoices.timeline and models.invoices.timeline.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from core.http.answers import Answer

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
    """The details of an event. Fields that do not apply to it are absent."""

    amount: Annotated[
        _Amount | UnsetType,
        Meta(description="created: the price; else the amount of the deposit or refund, in currency."),
    ] = UNSET
    currency: Annotated[
        str | UnsetType,
        Meta(description="The coin of the amounts; created: the currency of the price.", examples=["USDT"]),
    ] = UNSET
    network: Annotated[
        str | UnsetType, Meta(description="The network of the coin, deposit or refund.", examples=["ethereum"])
    ] = UNSET
    txid: Annotated[
        str | UnsetType, Meta(description="The transaction's hash; empty for a refund that is not sent yet.")
    ] = UNSET
    block_height: Annotated[
        int | UnsetType, Meta(description="The height of the deposit's block: the number of blocks before it.")
    ] = UNSET
    expired_at: Annotated[int | UnsetType, Meta(description="created: the time of expiry, in Unix seconds.")] = UNSET
    rate_expires_at: Annotated[
        int | UnsetType, Meta(description="quoted: the time until which the quote is valid, in Unix seconds.")
    ] = UNSET
    generation: Annotated[
        int | UnsetType, Meta(description="quoted: the number of quotes of the payment so far, from 1.", examples=[1])
    ] = UNSET
    payer_amount: Annotated[
        _Amount | UnsetType, Meta(description="quoted, expired, resolved: the amount to pay, in currency.")
    ] = UNSET
    payment_amount: Annotated[
        str | UnsetType,
        Meta(description="expired, resolved: the sum of confirmed deposits, in currency.", examples=["125"]),
    ] = UNSET
    amount_paid: Annotated[
        str | UnsetType, Meta(description="expired, resolved: the sum detected so far, in currency.", examples=["125"])
    ] = UNSET
    amount_remaining: Annotated[
        str | UnsetType,
        Meta(description="expired, resolved: the sum that was missing then, in currency.", examples=["0.5628"]),
    ] = UNSET
    seen_at: Annotated[
        _Moment | UnsetType,
        Meta(
            description="detected: the time of the payment, which decides if it was late: its block's, or an"
            " earlier one; ISO 8601."
        ),
    ] = UNSET
    gone_at: Annotated[
        _Moment | UnsetType,
        Meta(
            description="detected: the time since which an unconfirmed payment has disappeared from the network;"
            " ISO 8601."
        ),
    ] = UNSET
    is_late: Annotated[
        bool | UnsetType, Meta(description="detected: true if seen_at is after the payment's expiry.")
    ] = UNSET
    stray_reason: Annotated[
        Literal["asset", "network", "dust"] | UnsetType,
        Meta(
            description="The reason why the deposit does not count. asset: another coin; network: another"
            " network; dust: too small."
        ),
    ] = UNSET
    depth: Annotated[
        str | UnsetType,
        Meta(description="confirmation: the present and the required number of confirmations.", examples=["3 of 12"]),
    ] = UNSET
    waiting_for: Annotated[
        Literal["block", "confirmations", "witnesses", "scan", "rest", "resolve", "rate"] | UnsetType,
        Meta(
            description=(
                "The next step that the deposit needs. block: its first block; confirmations: more"
                " confirmations; witnesses: other providers that confirm it; scan: the network's scan,"
                " which is paused; rest: the rest of the amount; resolve: a call of /v1/payment/resolve;"
                " rate: a rate, for a quote."
            )
        ),
    ] = UNSET
    witness_reason: Annotated[
        Literal["amount", "unpriced", "hourly", "missing", "hidden"] | UnsetType,
        Meta(
            description=(
                "The reason why one provider is not enough. amount: the deposit is large; unpriced: its"
                " coin has no rate; hourly: smaller deposits used up this hour's limit; missing: a second"
                " reading of its block did not show it; hidden: a contract passed the coin on, so that only"
                " the address's balance shows it."
            )
        ),
    ] = UNSET
    witnesses: Annotated[
        str | UnsetType,
        Meta(
            description="The providers' last answers; empty before the first.",
            examples=["1 of 3 providers agree, 0 tell otherwise"],
        ),
    ] = UNSET
    net_amount: Annotated[_Amount | UnsetType, Meta(description="credited: the amount that you got, in currency.")] = (
        UNSET
    )
    fee: Annotated[
        str | UnsetType, Meta(description="credited: the gateway's fee, in currency.", examples=["2.1834"])
    ] = UNSET
    status: Annotated[
        str | UnsetType,
        Meta(
            description=(
                "expired: the payment's new status; reorged: the deposit's old status; refunded, webhook:"
                " the present status of the refund or the delivery."
            ),
            examples=["wrong_amount"],
        ),
    ] = UNSET
    reason: Annotated[
        Literal["unpaid", "short", "stray", "left_chain"] | UnsetType,
        Meta(
            description=(
                "expired: unpaid: no deposit that counts was confirmed; short: less than the amount;"
                " stray: only stray deposits. reorged: left_chain: the block left the chain."
            )
        ),
    ] = UNSET
    detected_at: Annotated[
        _Moment | UnsetType, Meta(description="reorged: the time at which the deposit was found; ISO 8601.")
    ] = UNSET
    confirmed_at: Annotated[
        _Moment | UnsetType, Meta(description="reorged: the time at which it was confirmed, if it was; ISO 8601.")
    ] = UNSET
    credited_at: Annotated[
        _Moment | UnsetType, Meta(description="reorged: the time at which it was credited, if it was; ISO 8601.")
    ] = UNSET
    action: Annotated[Literal["accept", "refund"] | UnsetType, Meta(description="resolved: your decision.")] = UNSET
    uuid: Annotated[str | UnsetType, Meta(description="resolved, refunded: the refund's identifier.")] = UNSET
    address: Annotated[str | UnsetType, Meta(description="resolved, refunded: the refund's recipient.")] = UNSET
    ended_at: Annotated[
        _Moment | UnsetType, Meta(description="refunded: the time at which the refund ended; ISO 8601.")
    ] = UNSET
    error: Annotated[str | UnsetType, Meta(description="refunded: the reason of the refund's failure.")] = UNSET
    delivery_id: Annotated[
        str | UnsetType, Meta(description="webhook: the delivery's identifier in /v1/webhooks/deliveries.")
    ] = UNSET
    event: Annotated[
        str | UnsetType, Meta(description="webhook: the event that it reports.", examples=["invoice.paid"])
    ] = UNSET
    attempts: Annotated[int | UnsetType, Meta(description="webhook: the number of attempts so far.", examples=[1])] = (
        UNSET
    )
    last_status_code: Annotated[
        int | UnsetType, Meta(description="webhook: the HTTP status of the last attempt.", examples=[200])
    ] = UNSET
    last_error: Annotated[str | UnsetType, Meta(description="webhook: the error of the last attempt.")] = UNSET
    delivered_at: Annotated[
        _Moment | UnsetType, Meta(description="webhook: the time at which your endpoint accepted it; ISO 8601.")
    ] = UNSET


class TimelineEvent(Answer, kw_only=True):
    """An event in a payment's history."""

    at: Annotated[_Moment, Meta(description="The time of the event, in ISO 8601, UTC.")]
    event: Annotated[EventName, Meta(description="The kind of the event.")]
    detail: Annotated[
        TimelineDetail, Meta(description="The amounts of the event, and the reason if something waits or is missing.")
    ]


class Timeline(Answer, kw_only=True):
    """The history of a payment."""

    items: Annotated[
        list[TimelineEvent],
        Meta(description="The events, oldest first. Of more than 1000: created, and the newest.", max_length=1000),
    ]

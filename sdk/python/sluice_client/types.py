"""Every object of the API, as its JSON has it. Made by sdk/generate.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

PaymentPaymentStatus = Literal["check", "expired", "paid", "paid_over", "select", "wrong_amount"]

StrayDepositReason = Literal["asset", "dust", "network"]

ResolvePaymentAction = Literal["accept", "refund"]

PaymentRefundStatus = Literal["awaiting_cosign", "cancel", "check", "fail", "paid", "process"]

CreatePaymentLinkAmountMode = Literal["fixed", "open", "range"]

PayoutWaitingFor = Literal["approval", "cosign", "debt", "fee", "freeze", "limit", "liquidity", "network"]

PayoutSource = Literal["api", "manual"]

CreatePayoutSource = Literal["", "api", "manual"]

CreatedPayoutLinkStatus = Literal["cancelled", "claimed", "claiming", "expired", "funded"]

CreatePaymentBatchOnError = Literal["", "continue", "stop"]

BatchCreatedKind = Literal["payment", "payout", "refund"]

ListDeliveriesEvent = Literal[
    "invoice.expired",
    "invoice.paid",
    "invoice.paid_over",
    "invoice.wrong_amount",
    "payout.approved",
    "payout.awaiting_cosign",
    "payout.broadcasting",
    "payout.cancelled",
    "payout.confirmed",
    "payout.failed",
    "payout.pending",
    "payout.sent",
    "wallet.paid",
    "",
]

HealthStatus = Literal["ok"]

Done = Literal[0]


class CreatePayment(TypedDict):
    """An invoice to create (POST /v1/payment)."""

    amount: str
    """A decimal string, with no more fractional digits than the currency has."""
    currency: str
    """The currency of the price: a fiat currency or a coin."""
    order_id: NotRequired[str | None]
    """Your own reference, at most 255 characters. A repeat with the reference of an existing object returns that
    object.
    """
    network: NotRequired[str | None]
    """The network that the buyer pays on. Without it the buyer chooses."""
    to_currency: NotRequired[str | None]
    """The coin that the buyer pays in. Without it the buyer chooses; if only network is set, it is currency."""
    lifetime: NotRequired[int | None]
    """Seconds until the payment expires: 300 to 43200. A value outside is set to the nearest limit. Default:
    3600, unless the gateway's operator chose another.
    """
    subtract: NotRequired[int | None]
    """Percent of the network fee that the payer bears, from 0 to 100."""
    accuracy_payment_percent: NotRequired[float | None]
    """Tolerated difference from the amount, in percent: 0 to 5, at most 4 fractional digits. Default: your
    account's setting.
    """
    url_callback: NotRequired[str | None]
    """URL that receives this payment's webhooks instead of your registered endpoint, which you still need.
    Public http or https. A host in Unicode is stored as punycode.
    """
    url_return: NotRequired[str | None]
    """An absolute URL, http or https, at most 2048 characters."""
    url_success: NotRequired[str | None]
    """An absolute URL, http or https, at most 2048 characters."""
    additional_data: NotRequired[str | None]
    """Your private text, at most 4096 characters. Webhooks repeat it; the buyer never sees it."""
    payer_email: NotRequired[str | None]
    """The buyer's e-mail address, for the receipt."""
    theme: NotRequired[Literal["", "dark", "light"] | None]
    """The theme of the payment page."""
    is_payment_multiple: NotRequired[bool | None]
    """true: the payment page asks the buyer for the rest of an incomplete payment. Default false."""
    is_refresh: NotRequired[bool | None]
    """true: reopen the expired payment of this order_id. Default false."""


class Payment(TypedDict):
    """A payment as its merchant sees it."""

    uuid: str
    """The payment's identifier."""
    order_id: str
    """Your own reference; empty if it has none."""
    amount: str
    """The price, in currency."""
    payment_amount: str | None
    """The sum of confirmed deposits, in payer_currency; null before the first one."""
    amount_paid: str
    """The sum detected so far, in payer_currency; empty before a coin is chosen."""
    amount_remaining: str
    """The sum still due, in payer_currency; empty before a coin is chosen."""
    payer_amount: str
    """The amount to pay, in payer_currency; empty before a coin is chosen."""
    payer_currency: str
    """The coin that the buyer pays in; empty before it is chosen."""
    currency: str
    """The currency of the price."""
    network: str
    """The network that the buyer pays on; empty before a coin is chosen."""
    address: str
    """The address to pay to; empty before a coin is chosen."""
    address_qr_code: str
    """The QR code of the address, as a PNG data URI."""
    payment_status: PaymentPaymentStatus
    """select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right;
    paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing
    was paid in time.
    """
    is_multi: bool
    """true if the buyer chooses coin and network."""
    url: str
    """The hosted payment page."""
    expired_at: int
    """The time of expiry, in Unix seconds."""
    rate_expires_at: int
    """The time until which payer_amount is valid, in Unix seconds."""
    is_final: bool
    """true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""
    url_return: str
    """The URL of the payment page's link back to your shop; empty if you set none."""
    url_success: str
    """The URL that the payment page leads to once it is paid; empty if you set none."""
    confirmations: int
    """Confirmations of the newest deposit that counts; 0 before the first deposit."""
    required_confirmations: int
    """Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen."""
    txid: str
    """The transaction's hash; empty until it is known."""
    accepted: NotRequired[list[AcceptedMethod]]
    """The methods that the buyer may choose; only while the status is select."""
    additional_data: str
    """Your private text, as you sent it."""
    payer_email: str
    """The buyer's e-mail address; empty if it is unknown."""
    payer_address: str
    """The sender's address; empty on networks where a transaction can have several senders."""


class AcceptedMethod(TypedDict):
    """A coin on a network."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""


class PaymentLookup(TypedDict):
    """The payment, by uuid or else by order_id."""

    uuid: NotRequired[str | None]
    """The object's identifier. If it is set, order_id is ignored."""
    order_id: NotRequired[str | None]
    """Your own reference."""


class PaymentInfo(TypedDict):
    """A payment with what was refunded of it and what strayed to its address."""

    uuid: str
    """The payment's identifier."""
    order_id: str
    """Your own reference; empty if it has none."""
    amount: str
    """The price, in currency."""
    payment_amount: str | None
    """The sum of confirmed deposits, in payer_currency; null before the first one."""
    amount_paid: str
    """The sum detected so far, in payer_currency; empty before a coin is chosen."""
    amount_remaining: str
    """The sum still due, in payer_currency; empty before a coin is chosen."""
    payer_amount: str
    """The amount to pay, in payer_currency; empty before a coin is chosen."""
    payer_currency: str
    """The coin that the buyer pays in; empty before it is chosen."""
    currency: str
    """The currency of the price."""
    network: str
    """The network that the buyer pays on; empty before a coin is chosen."""
    address: str
    """The address to pay to; empty before a coin is chosen."""
    address_qr_code: str
    """The QR code of the address, as a PNG data URI."""
    payment_status: PaymentPaymentStatus
    """select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right;
    paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing
    was paid in time.
    """
    is_multi: bool
    """true if the buyer chooses coin and network."""
    url: str
    """The hosted payment page."""
    expired_at: int
    """The time of expiry, in Unix seconds."""
    rate_expires_at: int
    """The time until which payer_amount is valid, in Unix seconds."""
    is_final: bool
    """true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""
    url_return: str
    """The URL of the payment page's link back to your shop; empty if you set none."""
    url_success: str
    """The URL that the payment page leads to once it is paid; empty if you set none."""
    confirmations: int
    """Confirmations of the newest deposit that counts; 0 before the first deposit."""
    required_confirmations: int
    """Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen."""
    txid: str
    """The transaction's hash; empty until it is known."""
    accepted: NotRequired[list[AcceptedMethod]]
    """The methods that the buyer may choose; only while the status is select."""
    additional_data: str
    """Your private text, as you sent it."""
    payer_email: str
    """The buyer's e-mail address; empty if it is unknown."""
    payer_address: str
    """The sender's address; empty on networks where a transaction can have several senders."""
    revision: int
    """The number of changes of payment_status so far; webhook bodies have the same number. 0 before the first
    change.
    """
    refund_status: Literal["full", "none", "partial"]
    """The refunded part. Pending refunds count; failed and cancelled ones do not."""
    refunds: list[Refund]
    """Its refunds, oldest first; only the newest 1000."""
    stray_deposits: list[StrayDeposit]
    """Deposits to its address that do not count, oldest first."""


class Refund(TypedDict):
    """A refund of a payment, or of a stray deposit to its address."""

    uuid: str
    """The refund's identifier, which is also its payout's."""
    status: str
    """The status of its payout: check, awaiting_cosign, process, paid, fail or cancel."""
    amount: str
    """The amount that the recipient gets, in the refund's coin."""
    address: str
    """The recipient's address."""
    txid: str
    """The transaction's hash; empty until it is known."""
    is_final: bool
    """true if the status is paid, fail or cancel."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""
    currency: NotRequired[str]
    """The coin; only in the refund of a stray deposit."""
    network: NotRequired[str]
    """The network; only in the refund of a stray deposit."""


class StrayDeposit(TypedDict):
    """A deposit of another asset, on another network, or too small to count."""

    txid: str
    """The transaction's hash."""
    currency: str
    """The coin that was received."""
    network: str
    """The network on which it was received."""
    amount: str
    """The amount received, in its coin."""
    status: str
    """The state of the deposit. refunding: a refund is being sent; refunded: the refund was sent."""
    reason: StrayDepositReason
    """asset: another coin; network: another network; dust: below the network's smallest deposit."""


class PaymentHistory(TypedDict):
    """A page of a merchant's payments, newest first (POST /v1/payment/history)."""

    limit: NotRequired[int | None]
    """The number of items on a page: 1 to 200. Any other value means 50."""
    cursor: NotRequired[str | None]
    """The next_cursor of the previous page. Default: the first page."""
    status: NotRequired[Literal["", "check", "expired", "paid", "paid_over", "select", "wrong_amount"] | None]
    """Only payments with this payment_status. Default: all."""
    currency: NotRequired[str | None]
    """The currency of the price."""
    network: NotRequired[str | None]
    """The network that the buyer pays on. Without it the buyer chooses."""
    order_id: NotRequired[str | None]
    """Only payments with this order_id."""
    date_from: NotRequired[str | None]
    """Only those created at this time or later."""
    date_to: NotRequired[str | None]
    """Only those created before this time. A date without time includes that day."""


class PaymentPage(TypedDict):
    """Payments, and where the next page begins."""

    items: list[Payment]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page; null on the last page."""


class Image(TypedDict):
    """A QR code."""

    image: str
    """The QR code, as a PNG data URI."""


class Empty(TypedDict):
    """A body without fields."""


class PaymentServices(TypedDict):
    """Every method of the catalogue."""

    items: list[PaymentMethod]
    """One item for each coin on a network."""


class PaymentMethod(TypedDict):
    """A coin on a network, with your terms for payments in it."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    is_available: bool
    """true if payments in it are possible now."""
    limit: MethodLimit
    """The smallest and largest payment."""
    commission: MethodCommission
    """The gateway's fee for your account."""
    confirmations: int
    """Confirmations that a deposit needs to count."""
    discount_percent: float
    """Percent off the price. A negative value raises the price."""


class MethodLimit(TypedDict):
    """The smallest and largest amount, in the coin."""

    min_amount: str
    """The amount, in the coin."""
    max_amount: str | None
    """The amount, in the coin; null while the coin has no rate."""


class MethodCommission(TypedDict):
    """The gateway's fee."""

    percent: str
    """Percent of the credited amount."""
    fixed_usd: str
    """US dollars, once for each payment."""


class ResolvePayment(TypedDict):
    """Your decision on a wrong_amount payment or a stray deposit (POST /v1/payment/resolve)."""

    uuid: NotRequired[str | None]
    """The object's identifier. If it is set, order_id is ignored."""
    order_id: NotRequired[str | None]
    """Your own reference."""
    action: ResolvePaymentAction
    """accept: credit the received amount; refund: send it back, less the network fee."""
    txid: NotRequired[str | None]
    """The transaction of the stray deposit to decide on."""
    address: NotRequired[str | None]
    """For a refund: the recipient's address. Default: the payer's. Any other address needs an approval."""
    network: NotRequired[str | None]
    """For a refund: must be the deposit's network, if you send it."""


class ResolvedPayment(TypedDict):
    """A payment after its resolution, with the refund if you chose one."""

    uuid: str
    """The payment's identifier."""
    order_id: str
    """Your own reference; empty if it has none."""
    amount: str
    """The price, in currency."""
    payment_amount: str | None
    """The sum of confirmed deposits, in payer_currency; null before the first one."""
    amount_paid: str
    """The sum detected so far, in payer_currency; empty before a coin is chosen."""
    amount_remaining: str
    """The sum still due, in payer_currency; empty before a coin is chosen."""
    payer_amount: str
    """The amount to pay, in payer_currency; empty before a coin is chosen."""
    payer_currency: str
    """The coin that the buyer pays in; empty before it is chosen."""
    currency: str
    """The currency of the price."""
    network: str
    """The network that the buyer pays on; empty before a coin is chosen."""
    address: str
    """The address to pay to; empty before a coin is chosen."""
    address_qr_code: str
    """The QR code of the address, as a PNG data URI."""
    payment_status: PaymentPaymentStatus
    """select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right;
    paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing
    was paid in time.
    """
    is_multi: bool
    """true if the buyer chooses coin and network."""
    url: str
    """The hosted payment page."""
    expired_at: int
    """The time of expiry, in Unix seconds."""
    rate_expires_at: int
    """The time until which payer_amount is valid, in Unix seconds."""
    is_final: bool
    """true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""
    url_return: str
    """The URL of the payment page's link back to your shop; empty if you set none."""
    url_success: str
    """The URL that the payment page leads to once it is paid; empty if you set none."""
    confirmations: int
    """Confirmations of the newest deposit that counts; 0 before the first deposit."""
    required_confirmations: int
    """Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen."""
    txid: str
    """The transaction's hash; empty until it is known."""
    accepted: NotRequired[list[AcceptedMethod]]
    """The methods that the buyer may choose; only while the status is select."""
    additional_data: str
    """Your private text, as you sent it."""
    payer_email: str
    """The buyer's e-mail address; empty if it is unknown."""
    payer_address: str
    """The sender's address; empty on networks where a transaction can have several senders."""
    refund: NotRequired[PaymentRefund]
    """The refund; only with the action refund."""


class PaymentRefund(TypedDict):
    """A refund, which is a payout of a payment."""

    uuid: str
    """The refund's identifier, which is also its payout's."""
    payment_uuid: str
    """The refunded payment's identifier."""
    status: PaymentRefundStatus
    """The status of its payout. check: it waits for POST /v1/payout/approve."""
    amount: str
    """The amount that the recipient gets, in currency."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    address: str
    """The recipient's address."""
    txid: str
    """The transaction's hash; empty until it is sent."""
    approval_required: bool
    """true if it needs, or needed, POST /v1/payout/approve."""
    is_final: bool
    """true if the status is paid, fail or cancel."""
    created_at: str
    """Time in ISO 8601, UTC."""


class Resent(TypedDict):
    """The webhooks of a payment's latest status, queued again; empty before the first event."""

    deliveries: list[QueuedDelivery]
    """The deliveries that are sent again."""


class QueuedDelivery(TypedDict):
    """A webhook that was queued again."""

    delivery_id: str
    """The delivery's identifier, which is the X-Webhook-Id of every attempt."""
    event: str
    """The event's name."""
    status: str
    """pending: the delivery waits for its next attempt."""


class SendPaymentEmail(TypedDict):
    """A payment whose details are sent by e-mail (POST /v1/payment/send-email)."""

    uuid: NotRequired[str | None]
    """The object's identifier. If it is set, order_id is ignored."""
    order_id: NotRequired[str | None]
    """Your own reference."""
    email: NotRequired[str | None]
    """The recipient's e-mail address. Default: the payment's payer_email."""


class QueuedEmail(TypedDict):
    """An e-mail that waits to be sent."""

    email: str
    """The recipient's e-mail address."""
    queued: bool
    """Always true: the e-mail is stored, and is sent in the background."""


class SetAccepted(TypedDict):
    """The methods that a merchant accepts (POST /v1/payment/accepted)."""

    accepted: NotRequired[list[MethodName] | None]
    """The new list, at most 200 methods. Omit it to read the list; [] accepts every method."""


class MethodName(TypedDict):
    """A coin on a network, as a merchant names it."""

    currency: str
    """The coin."""
    network: NotRequired[str | None]
    """The network. May be omitted if the coin has only one."""


class AcceptedMethods(TypedDict):
    """The methods that a merchant accepts."""

    accepted: list[AcceptedMethod]
    """The accepted methods; an empty list means every method."""


class SetDiscount(TypedDict):
    """A discount for payments in a coin (POST /v1/payment/discount)."""

    currency: NotRequired[str | None]
    """The coin."""
    network: NotRequired[str | None]
    """The network. Default: all networks of the coin."""
    discount_percent: NotRequired[float | None]
    """Percent off the price: -99 to 99, at most 4 fractional digits. 0 ends the discount; a negative value
    raises the price.
    """


class Discounts(TypedDict):
    """A merchant's discounts. A method that is not listed has no discount."""

    items: list[Discount]
    """One item for each method with a discount."""


class Discount(TypedDict):
    """The discount of a method."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    discount_percent: float
    """Percent off the price. A negative value raises the price."""


class SetAccuracy(TypedDict):
    """The difference that a merchant tolerates (POST /v1/payment/accuracy)."""

    enabled: NotRequired[bool | None]
    """true: a difference is tolerated. Omit it to keep the setting."""
    accuracy_percent: NotRequired[float | None]
    """Percent: 1 to 5 while enabled, at most 4 fractional digits. Omit it to keep the setting."""


class Accuracy(TypedDict):
    """The tolerated difference of payments without accuracy_payment_percent."""

    enabled: bool
    """true if a difference is tolerated."""
    accuracy_percent: float
    """Percent, in force while enabled; 0 if it was never set."""


class Timeline(TypedDict):
    """The history of a payment."""

    items: list[TimelineEvent]
    """The events, oldest first. Of more than 1000: created, and the newest."""


class TimelineEvent(TypedDict):
    """An event in a payment's history."""

    at: str
    """The time of the event, in ISO 8601, UTC."""
    event: Literal[
        "confirmation",
        "created",
        "credited",
        "detected",
        "expired",
        "quoted",
        "refunded",
        "reorged",
        "resolved",
        "selected",
        "webhook",
    ]
    """The kind of the event."""
    detail: TimelineDetail
    """The amounts of the event, and the reason if something waits or is missing."""


class TimelineDetail(TypedDict):
    """The details of an event. Fields that do not apply to it are absent."""

    amount: NotRequired[str]
    """created: the price; else the amount of the deposit or refund, in currency."""
    currency: NotRequired[str]
    """The coin of the amounts; created: the currency of the price."""
    network: NotRequired[str]
    """The network of the coin, deposit or refund."""
    txid: NotRequired[str]
    """The transaction's hash; empty for a refund that is not sent yet."""
    block_height: NotRequired[int]
    """The height of the deposit's block: the number of blocks before it."""
    expired_at: NotRequired[int]
    """created: the time of expiry, in Unix seconds."""
    rate_expires_at: NotRequired[int]
    """quoted: the time until which the quote is valid, in Unix seconds."""
    generation: NotRequired[int]
    """quoted: the number of quotes of the payment so far, from 1."""
    payer_amount: NotRequired[str]
    """quoted, expired, resolved: the amount to pay, in currency."""
    payment_amount: NotRequired[str]
    """expired, resolved: the sum of confirmed deposits, in currency."""
    amount_paid: NotRequired[str]
    """expired, resolved: the sum detected so far, in currency."""
    amount_remaining: NotRequired[str]
    """expired, resolved: the sum that was missing then, in currency."""
    seen_at: NotRequired[str]
    """detected: the time of the payment, which decides if it was late: its block's, or an earlier one; ISO 8601."""
    gone_at: NotRequired[str]
    """detected: the time since which an unconfirmed payment has disappeared from the network; ISO 8601."""
    is_late: NotRequired[bool]
    """detected: true if seen_at is after the payment's expiry."""
    stray_reason: NotRequired[StrayDepositReason]
    """The reason why the deposit does not count. asset: another coin; network: another network; dust: too small."""
    depth: NotRequired[str]
    """confirmation: the present and the required number of confirmations."""
    waiting_for: NotRequired[Literal["block", "confirmations", "rate", "resolve", "rest", "scan", "witnesses"]]
    """The next step that the deposit needs. block: its first block; confirmations: more confirmations;
    witnesses: other providers that confirm it; scan: the network's scan, which is paused; rest: the rest of
    the amount; resolve: a call of /v1/payment/resolve; rate: a rate, for a quote.
    """
    witness_reason: NotRequired[Literal["amount", "hidden", "hourly", "missing", "unpriced"]]
    """The reason why one provider is not enough. amount: the deposit is large; unpriced: its coin has no rate;
    hourly: smaller deposits used up this hour's limit; missing: a second reading of its block did not show
    it; hidden: a contract passed the coin on, so that only the address's balance shows it.
    """
    witnesses: NotRequired[str]
    """The providers' last answers; empty before the first."""
    net_amount: NotRequired[str]
    """credited: the amount that you got, in currency."""
    fee: NotRequired[str]
    """credited: the gateway's fee, in currency."""
    status: NotRequired[str]
    """expired: the payment's new status; reorged: the deposit's old status; refunded, webhook: the present
    status of the refund or the delivery.
    """
    reason: NotRequired[Literal["left_chain", "short", "stray", "unpaid"]]
    """expired: unpaid: no deposit that counts was confirmed; short: less than the amount; stray: only stray
    deposits. reorged: left_chain: the block left the chain.
    """
    detected_at: NotRequired[str]
    """reorged: the time at which the deposit was found; ISO 8601."""
    confirmed_at: NotRequired[str]
    """reorged: the time at which it was confirmed, if it was; ISO 8601."""
    credited_at: NotRequired[str]
    """reorged: the time at which it was credited, if it was; ISO 8601."""
    action: NotRequired[ResolvePaymentAction]
    """resolved: your decision."""
    uuid: NotRequired[str]
    """resolved, refunded: the refund's identifier."""
    address: NotRequired[str]
    """resolved, refunded: the refund's recipient."""
    ended_at: NotRequired[str]
    """refunded: the time at which the refund ended; ISO 8601."""
    error: NotRequired[str]
    """refunded: the reason of the refund's failure."""
    delivery_id: NotRequired[str]
    """webhook: the delivery's identifier in /v1/webhooks/deliveries."""
    event: NotRequired[str]
    """webhook: the event that it reports."""
    attempts: NotRequired[int]
    """webhook: the number of attempts so far."""
    last_status_code: NotRequired[int]
    """webhook: the HTTP status of the last attempt."""
    last_error: NotRequired[str]
    """webhook: the error of the last attempt."""
    delivered_at: NotRequired[str]
    """webhook: the time at which your endpoint accepted it; ISO 8601."""


class PublicPayment(TypedDict):
    """A payment as its buyer sees it."""

    uuid: str
    """The payment's identifier."""
    order_id: str
    """Your own reference; empty if it has none."""
    amount: str
    """The price, in currency."""
    payment_amount: str | None
    """The sum of confirmed deposits, in payer_currency; null before the first one."""
    amount_paid: str
    """The sum detected so far, in payer_currency; empty before a coin is chosen."""
    amount_remaining: str
    """The sum still due, in payer_currency; empty before a coin is chosen."""
    payer_amount: str
    """The amount to pay, in payer_currency; empty before a coin is chosen."""
    payer_currency: str
    """The coin that the buyer pays in; empty before it is chosen."""
    currency: str
    """The currency of the price."""
    network: str
    """The network that the buyer pays on; empty before a coin is chosen."""
    address: str
    """The address to pay to; empty before a coin is chosen."""
    address_qr_code: str
    """The QR code of the address, as a PNG data URI."""
    payment_status: PaymentPaymentStatus
    """select: the buyer has yet to choose a coin; check: waits for payment; paid: the amount is right;
    paid_over: more than the amount was paid; wrong_amount: too little was paid, or too late; expired: nothing
    was paid in time.
    """
    is_multi: bool
    """true if the buyer chooses coin and network."""
    url: str
    """The hosted payment page."""
    expired_at: int
    """The time of expiry, in Unix seconds."""
    rate_expires_at: int
    """The time until which payer_amount is valid, in Unix seconds."""
    is_final: bool
    """true if the status is final. A late deposit, a reorg or is_refresh can reopen the payment."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""
    url_return: str
    """The URL of the payment page's link back to your shop; empty if you set none."""
    url_success: str
    """The URL that the payment page leads to once it is paid; empty if you set none."""
    confirmations: int
    """Confirmations of the newest deposit that counts; 0 before the first deposit."""
    required_confirmations: int
    """Confirmations that a deposit needs to count; 100 for a block reward; 0 before a coin is chosen."""
    txid: str
    """The transaction's hash; empty until it is known."""
    accepted: NotRequired[list[AcceptedMethod]]
    """The methods that the buyer may choose; only while the status is select."""


class MethodChoice(TypedDict):
    """The coin and network that a buyer chooses (POST /v1/pay/{id}/select)."""

    currency: str
    """The coin to pay in."""
    network: NotRequired[str | None]
    """The network to pay on. May be omitted if the coin has only one."""


class CreatePaymentLink(TypedDict):
    """A payment link to create (POST /v1/payment/link)."""

    amount_mode: CreatePaymentLinkAmountMode
    """fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds."""
    currency: str
    """The currency of the price: a fiat currency or a coin."""
    amount_fixed: NotRequired[str | None]
    """The price, in currency. Mode fixed requires it; the others ignore it. At least one coin must allow a
    payment of this size.
    """
    amount_min: NotRequired[str | None]
    """The smallest amount that a buyer may pay, in currency. Mode range requires it; it is optional in mode
    open.
    """
    amount_max: NotRequired[str | None]
    """The largest amount that a buyer may pay, in currency. Mode range requires it; the others ignore it."""
    pinned_currency: NotRequired[str | None]
    """The coin that buyers pay in. Without it the buyer chooses."""
    pinned_network: NotRequired[str | None]
    """The coin's network. May be omitted if the coin has only one."""
    title: NotRequired[str | None]
    """Shown on the page."""
    description: NotRequired[str | None]
    """Shown on the page."""
    expires_in: NotRequired[int | None]
    """Seconds until the link expires, at most ten years. Default 0: it never expires."""


class CreatedPaymentLink(TypedDict):
    """A new payment link."""

    link_id: str
    """The link's identifier."""
    url: str
    """The page to send buyers to."""


class PaymentLinkPage(TypedDict):
    """A page of a merchant's payment links, newest first (POST /v1/payment/link/list)."""

    limit: NotRequired[int | None]
    """The number of links on a page: 1 to 200. Any other value means 50."""
    offset: NotRequired[int | None]
    """The number of links to skip, from the newest. Default 0."""


class PaymentLinks(TypedDict):
    """A page of payment links."""

    items: list[PaymentLink]
    """Newest first."""


class PaymentLink(TypedDict):
    """A payment link. Fields that are not set are absent."""

    link_id: str
    """The link's identifier."""
    url: str
    """The page to send buyers to."""
    title: NotRequired[str]
    """Shown on the page."""
    description: NotRequired[str]
    """Shown on the page."""
    amount_mode: CreatePaymentLinkAmountMode
    """fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds."""
    currency: str
    """The currency of the price."""
    amount_fixed: NotRequired[str]
    """The price, in currency; only in mode fixed."""
    amount_min: NotRequired[str]
    """The smallest amount, in currency; only in modes open and range."""
    amount_max: NotRequired[str]
    """The largest amount, in currency; only in mode range."""
    pinned_currency: NotRequired[str]
    """The coin that buyers pay in, if you set one."""
    pinned_network: NotRequired[str]
    """The network of that coin."""
    active: bool
    """true if buyers can use the link, until it expires."""
    expires_at: NotRequired[str]
    """The time of expiry in ISO 8601, UTC; absent if the link never expires."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""


class PaymentLinkInfo(TypedDict):
    """A payment link and a page of its payments (POST /v1/payment/link/info)."""

    link_id: str
    """The link's identifier."""
    limit: NotRequired[int | None]
    """The number of payments to show: 1 to 200. Any other value means 50."""
    offset: NotRequired[int | None]
    """The number of payments to skip, from the newest. Default 0."""


class PaymentLinkWithPayments(TypedDict):
    """A payment link with some of its payments."""

    link_id: str
    """The link's identifier."""
    url: str
    """The page to send buyers to."""
    title: NotRequired[str]
    """Shown on the page."""
    description: NotRequired[str]
    """Shown on the page."""
    amount_mode: CreatePaymentLinkAmountMode
    """fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds."""
    currency: str
    """The currency of the price."""
    amount_fixed: NotRequired[str]
    """The price, in currency; only in mode fixed."""
    amount_min: NotRequired[str]
    """The smallest amount, in currency; only in modes open and range."""
    amount_max: NotRequired[str]
    """The largest amount, in currency; only in mode range."""
    pinned_currency: NotRequired[str]
    """The coin that buyers pay in, if you set one."""
    pinned_network: NotRequired[str]
    """The network of that coin."""
    active: bool
    """true if buyers can use the link, until it expires."""
    expires_at: NotRequired[str]
    """The time of expiry in ISO 8601, UTC; absent if the link never expires."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""
    payments: list[LinkPayment]
    """Newest first."""


class LinkPayment(TypedDict):
    """A payment that a buyer made by a link."""

    uuid: str
    """The payment's identifier."""
    status: PaymentPaymentStatus
    """The payment's status."""
    amount: str
    """The price, in currency."""
    currency: str
    """The currency of the price."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""


class TogglePaymentLink(TypedDict):
    """A payment link to switch on or off (POST /v1/payment/link/toggle)."""

    link_id: str
    """The link's identifier."""
    active: bool
    """false: the link's page and checkout answer as if the link did not exist."""


class ToggledPaymentLink(TypedDict):
    """The new state of a link."""

    link_id: str
    """The link's identifier."""
    active: bool
    """true if buyers can use the link, until it expires."""


class PublicPaymentLink(TypedDict):
    """A payment link as its buyers see it."""

    link_id: str
    """The link's identifier."""
    url: str
    """The page to send buyers to."""
    title: NotRequired[str]
    """Shown on the page."""
    description: NotRequired[str]
    """Shown on the page."""
    amount_mode: CreatePaymentLinkAmountMode
    """fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two bounds."""
    currency: str
    """The currency of the price."""
    amount_fixed: NotRequired[str]
    """The price, in currency; only in mode fixed."""
    amount_min: NotRequired[str]
    """The smallest amount, in currency; only in modes open and range."""
    amount_max: NotRequired[str]
    """The largest amount, in currency; only in mode range."""
    pinned_currency: NotRequired[str]
    """The coin that buyers pay in, if you set one."""
    pinned_network: NotRequired[str]
    """The network of that coin."""
    active: bool
    """true if buyers can use the link, until it expires."""
    expires_at: NotRequired[str]
    """The time of expiry in ISO 8601, UTC; absent if the link never expires."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""
    merchant_name: str
    """The name of the merchant."""
    accepted: list[AcceptedMethod]
    """The methods to pay by: the coin of the link, or all that the merchant accepts."""


class BuyersOrder(TypedDict):
    """A buyer's order on a link (POST /v1/link/{link_id}/checkout). Other fields have no effect."""

    amount: NotRequired[str | None]
    """The amount that the buyer pays, in the link's currency. Ignored if the link has a fixed price."""
    currency: NotRequired[str | None]
    """The coin that the buyer pays in."""
    network: NotRequired[str | None]
    """The coin's network. May be omitted if the coin has only one."""
    payer_email: NotRequired[str | None]
    """The buyer's e-mail address, for a receipt, if the gateway sends e-mail."""


class Currencies(TypedDict):
    """The catalogue."""

    currencies: list[Currency]
    """The coins to be paid in."""
    pricing_currencies: list[PricingCurrency]
    """The currencies to set prices in."""


class Currency(TypedDict):
    """A coin to be paid in."""

    currency: str
    """The coin's code."""
    name: str
    """The coin's name."""
    networks: list[CurrencyNetwork]
    """The networks that carry the coin."""


class CurrencyNetwork(TypedDict):
    """A network that carries a coin."""

    network: str
    """The network's code."""
    contract: str | None
    """The token's contract; null for the network's own coin."""
    decimals: int
    """The decimal places of the coin on this network."""
    precision: int
    """The decimal places that an amount may have on this network."""
    min_minor: str
    """The smallest deposit that counts, in the coin's smallest units on this network."""
    confirmations: int
    """Confirmations that a deposit needs to be credited."""
    maturity: int
    """Confirmations from which the credit can be spent."""
    is_available: bool
    """true if payments in it are possible now."""


class PricingCurrency(TypedDict):
    """A currency to set prices in."""

    currency: str
    """The currency's code."""
    kind: Literal["crypto", "fiat"]
    """fiat: a fiat currency; crypto: a coin."""
    precision: int
    """The decimal places that a price may have."""


class RateQuery(TypedDict):
    """The rates to read (POST /v1/exchange-rate/list)."""

    currency_from: NotRequired[str | None]
    """The currency. Default: all."""


ExchangeRate = TypedDict("ExchangeRate", {"from": "str", "to": 'Literal["USDT"]', "course": "str", "updated_at": "str"})


class CreateRefund(TypedDict):
    """A full or partial refund of a payment (POST /v1/payment/refund)."""

    uuid: NotRequired[str | None]
    """The object's identifier. If it is set, order_id is ignored."""
    order_id: NotRequired[str | None]
    """Your own reference."""
    amount: NotRequired[str | None]
    """The amount to refund, in the payment's coin. Default: the whole rest."""
    address: NotRequired[str | None]
    """The recipient's address. Default: the payment's payer_address. Any other address needs an approval."""
    network: NotRequired[str | None]
    """Must be the payment's network, if you send it."""


class BlockedRefund(TypedDict):
    """A refund of a blocked static wallet's deposits (POST /v1/wallet/blocked-address-refund)."""

    uuid: NotRequired[str | None]
    """The wallet's identifier. If it is set, address is ignored."""
    address: NotRequired[str | None]
    """The wallet's address."""
    refund_address: str
    """The address that receives the coins, on their network."""


class WalletRefunds(TypedDict):
    """The refunds of a blocked wallet, a payout for each coin."""

    payouts: list[Payout]
    """One payout for each coin on a network."""


class Payout(TypedDict):
    """A payout."""

    uuid: str
    """The payout's identifier."""
    order_id: str
    """Your own reference."""
    amount: str
    """The requested amount, in currency."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    address: str
    """The recipient's address."""
    txid: str
    """The transaction's hash; empty until it is sent."""
    status: PaymentRefundStatus
    """check: waits for an approval; awaiting_cosign: waits for a second one; process: approved and being sent;
    paid, fail and cancel are final.
    """
    waiting_for: NotRequired[PayoutWaitingFor]
    """The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network
    has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the
    network fee is too high now; cosign, approval: another key or user has to approve it; network: the network
    or its nodes have a problem; debt: your balance has a debt.
    """
    is_final: bool
    """true if the status is paid, fail or cancel."""
    approval_required: bool
    """true if it needs, or needed, POST /v1/payout/approve."""
    source: PayoutSource
    """The origin of the payout: api or manual."""
    memo: str
    """The memo; empty if it has none."""
    commission: str
    """The network fee, in currency."""
    confirmations: int
    """The confirmations of its transaction."""
    error: str | None
    """The reason of the failure; null unless the status is fail."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""


class Balance(TypedDict):
    """The balances of all coins."""

    items: list[BalanceItem]
    """The merchant's balances, in amounts of each coin."""
    personal: list[PersonalItem]
    """The owner's personal balances, which all of the owner's merchants share; empty without an owner."""


class BalanceItem(TypedDict):
    """A merchant's balance of one coin, over all its networks."""

    currency: str
    """The coin's code."""
    available: str
    """The amount that can be spent."""
    maturing: str
    """The amount that is credited, but needs more confirmations before it can be spent."""
    payout_held: str
    """The amount that is held for unfinished payouts and payout links."""
    hold: str
    """Shares of split rules that wait for the end of their hold."""
    debt: str
    """The amount that you owe because a reorg removed a deposit that was already spent. New credits repay it
    first.
    """
    total: str
    """available + maturing + payout_held + hold - debt."""


class PersonalItem(TypedDict):
    """The owner's personal balance of one coin."""

    currency: str
    """The coin's code."""
    available: str
    """The amount that can be spent."""


class ToPersonal(TypedDict):
    """A transfer from a merchant's balance to its owner's personal balance (POST /v1/transfer/to-personal)."""

    amount: str
    """A decimal string, with no more fractional digits than the currency has."""
    currency: str
    """The coin."""
    order_id: NotRequired[str | None]
    """Your own reference. Always send it: a repeat with the same order_id moves nothing and gets the first
    answer.
    """


class Transferred(TypedDict):
    """A completed transfer."""

    currency: str
    """The coin's code."""
    amount: str
    """The moved amount, in currency."""
    direction: Literal["to_personal"]
    """to_personal: from the merchant's balance to the owner's personal balance."""
    personal_balance: str
    """The owner's personal balance after the transfer, in currency. All of the owner's merchants share it."""


class CreatePayout(TypedDict):
    """A payout to make (POST /v1/payout; the items of mass calls and batches)."""

    order_id: str
    """Your own reference, at most 255 characters. A repeat with the same order_id never makes a second payout."""
    amount: str
    """The amount, in currency. It may have no more fractional digits than the coin."""
    currency: str
    """The coin to send."""
    network: NotRequired[str | None]
    """The network. May be omitted if the coin has only one."""
    address: str
    """The recipient's address. If it mixes upper and lower case, its EIP-55 checksum must be right."""
    memo: NotRequired[str | None]
    """The memo, at most 120 characters; only on solana and ton."""
    is_subtract: NotRequired[bool | None]
    """true: you pay the network fee on top of the amount; false: the fee is deducted from the amount. Default:
    your fee settings.
    """
    from_currency: NotRequired[str | None]
    """The coin of your balance that pays for it: USDT, converted at the current rate. Default: currency."""
    priority: NotRequired[Literal["", "high", "normal"] | None]
    """high: sent before normal payouts. Default normal."""
    source: NotRequired[CreatePayoutSource | None]
    """The origin of the payout, which answers repeat. Default api."""
    url_callback: NotRequired[str | None]
    """URL that receives this payout's webhooks instead of your registered endpoint, which you still need. Public
    http or https. A host in Unicode is stored as punycode.
    """


class CreatedPayout(TypedDict):
    """A new payout."""

    uuid: str
    """The payout's identifier."""
    order_id: str
    """Your own reference."""
    amount: str
    """The requested amount, in currency."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    address: str
    """The recipient's address."""
    txid: str
    """The transaction's hash; empty until it is sent."""
    status: PaymentRefundStatus
    """check: waits for an approval; awaiting_cosign: waits for a second one; process: approved and being sent;
    paid, fail and cancel are final.
    """
    waiting_for: NotRequired[PayoutWaitingFor]
    """The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network
    has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the
    network fee is too high now; cosign, approval: another key or user has to approve it; network: the network
    or its nodes have a problem; debt: your balance has a debt.
    """
    is_final: bool
    """true if the status is paid, fail or cancel."""
    approval_required: bool
    """true if it needs, or needed, POST /v1/payout/approve."""
    source: PayoutSource
    """The origin of the payout: api or manual."""
    memo: str
    """The memo; empty if it has none."""
    commission: str
    """The network fee, in currency."""
    confirmations: int
    """The confirmations of its transaction."""
    error: str | None
    """The reason of the failure; null unless the status is fail."""
    created_at: str
    """Time in ISO 8601, UTC."""
    updated_at: str
    """Time in ISO 8601, UTC."""
    convert: NotRequired[PayoutConversion]
    """The conversion; only with from_currency."""


class PayoutConversion(TypedDict):
    """The conversion that paid for a payout."""

    from_currency: str
    """The coin taken from your balance."""
    to_currency: str
    """The coin of the payout."""
    from_amount: str
    """The amount taken from your balance, in from_currency."""
    rate: str
    """The amount of to_currency for one unit of from_currency."""


class CalculatePayout(TypedDict):
    """A payout to calculate without making it (POST /v1/payout/calculate)."""

    amount: str
    """The amount, in currency. It may have no more fractional digits than the coin."""
    currency: str
    """The coin to send."""
    network: NotRequired[str | None]
    """The network. May be omitted if the coin has only one."""
    is_subtract: NotRequired[bool | None]
    """true: you pay the network fee on top of the amount; false: the fee is deducted from the amount. Default:
    your fee settings.
    """


class PayoutQuote(TypedDict):
    """The present cost and result of a payout."""

    amount: str
    """The requested amount, in currency."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    commission: str
    """The network fee, in currency."""
    merchant_amount: str
    """The amount taken from your balance, in currency."""
    to_amount: str
    """The amount that the recipient gets, in currency."""
    available_now: str
    """The part of your available balance that can be paid out on this network now, in currency. Its limit is the
    gateway's wallet there, less the queued payouts. 0 while payouts are stopped.
    """


class MassPayout(TypedDict):
    """Up to 100 payouts, each made independently (POST /v1/payout/mass)."""

    payouts: list[CreatePayout]
    """1 to 100 payouts, in the form of POST /v1/payout. A malformed one fails alone."""
    source: NotRequired[CreatePayoutSource | None]
    """The source of payouts that have none of their own. Default api."""


class MassResult(TypedDict):
    """The outcome of each, in the order in which they were sent."""

    items: list[MassItem]
    """One for each payout of the request."""


class MassItem(TypedDict):
    """The outcome of one payout of a mass call."""

    success: bool
    """Whether it was made."""
    order_id: str
    """As it was sent; empty where it was none."""
    uuid: NotRequired[str]
    """The payout's identifier; only where it was made."""
    status: NotRequired[str]
    """The payout's status; only where it was made."""
    is_final: NotRequired[bool]
    """That of the payout; only where it was made."""
    approval_required: NotRequired[bool]
    """That of the payout; only where it was made."""
    message: NotRequired[str]
    """Why it was not made."""


class PayoutFeeSettings(TypedDict):
    """Your default for the network fee of payouts without is_subtract (POST /v1/payout/fee-settings)."""

    is_subtract: NotRequired[bool | None]
    """The new setting. Omit it to read the present one."""


class PayoutFees(TypedDict):
    """Who bears the network fee where a payout does not say it."""

    is_subtract: bool
    """true: on top of the amount; false: out of it."""


class PayoutLookup(TypedDict):
    """The payout, by uuid or else by order_id."""

    uuid: NotRequired[str | None]
    """The object's identifier. If it is set, order_id is ignored."""
    order_id: NotRequired[str | None]
    """Your own reference."""


class PayoutHistory(TypedDict):
    """A page of a merchant's payouts, newest first (POST /v1/payout/history)."""

    limit: NotRequired[int | None]
    """The number of items on a page: 1 to 200. Any other value means 50."""
    cursor: NotRequired[str | None]
    """The next_cursor of the previous page. Default: the first page."""
    status: NotRequired[Literal["", "awaiting_cosign", "cancel", "check", "fail", "paid", "process"] | None]
    """Only payouts with this status. Default: all."""
    currency: NotRequired[str | None]
    """Only payouts of this coin."""
    network: NotRequired[str | None]
    """Only payouts on this network."""
    order_id: NotRequired[str | None]
    """Your own reference."""
    date_from: NotRequired[str | None]
    """Only those created at this time or later."""
    date_to: NotRequired[str | None]
    """Only those created before this time. A date without time includes that day."""


class PayoutPage(TypedDict):
    """Payouts, and where the next page begins."""

    items: list[Payout]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page; null on the last page."""


class PayoutServices(TypedDict):
    """Every method of the catalogue."""

    items: list[PayoutMethod]
    """One for each coin on a network."""


class PayoutMethod(TypedDict):
    """A coin on a network, as it can be paid out."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    is_available: bool
    """Whether it can be paid out now."""
    limit: PayoutLimit
    """What can be sent."""
    commission: PayoutCommission
    """What it costs."""
    available_now: str
    """The part of your available balance that can be paid out on this network now, in currency. Its limit is the
    gateway's wallet there, less the queued payouts. 0 while payouts are stopped.
    """


class PayoutLimit(TypedDict):
    """The smallest and largest amount, in the coin."""

    min_amount: str
    """The amount, in the coin."""
    max_amount: str | None
    """The amount, in the coin; null: your balance is the limit."""


class PayoutCommission(TypedDict):
    """The present cost of a payout."""

    fee_amount: str | None
    """The network fee, in currency; null while it is unknown."""
    currency: str
    """The coin's code."""


class SetAutoWithdraw(TypedDict):
    """A rule that pays your balance out automatically (POST /v1/auto-withdraw)."""

    currency: NotRequired[str | None]
    """The coin. Each coin has at most one rule."""
    network: NotRequired[str | None]
    """The network of the payouts. May be omitted if the coin has only one network, or already has a rule.
    Another network than the rule's replaces the rule.
    """
    address: NotRequired[str | None]
    """Your address for the payouts. Omit it to keep the present one."""
    threshold: NotRequired[str | None]
    """When the available balance reaches this amount, all of it is paid out. In currency; at least the smallest
    payout. Omit it to keep the present one.
    """
    enabled: NotRequired[bool | None]
    """true: the rule makes payouts. Omit it to keep the setting; default true for a new rule."""


class AutoWithdraw(TypedDict):
    """The rules of a merchant."""

    items: list[AutoWithdrawRule]
    """The rules, one for each coin."""


class AutoWithdrawRule(TypedDict):
    """A rule that pays a coin out automatically."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    address: str
    """Your address for the payouts."""
    threshold: str
    """The available balance at which it is paid out, in currency."""
    enabled: bool
    """true if the rule makes payouts. It becomes false when a key that set or co-signed the address is revoked."""
    status: Literal["active", "awaiting_cosign", "off"]
    """active: in force; awaiting_cosign: it pays nothing until another key or user sends the same rule; off: not
    enabled.
    """


class CreatePayoutLink(TypedDict):
    """A payout link to create (POST /v1/payout/link)."""

    currency: str
    """The coin."""
    amount: str
    """The amount that the recipient gets, in currency. You pay the network fee on top."""
    network: NotRequired[str | None]
    """The network. May be omitted if the coin has only one."""
    reference: NotRequired[str | None]
    """Your own reference, at most 255 characters. A second link with the same reference is refused."""
    title: NotRequired[str | None]
    """Title that the recipient sees, at most 255 characters."""
    note: NotRequired[str | None]
    """Message to the recipient, at most 4096 characters."""
    email: NotRequired[str | None]
    """The recipient's e-mail address. The claim link is sent to it, if the gateway sends e-mail."""
    expires_in_hours: NotRequired[int | None]
    """Hours until the link expires: 1 to 720, default 1. A value outside is set to the nearest limit."""


class CreatedPayoutLink(TypedDict):
    """A new payout link, with the token for its claim. Token and claim URL are shown only once."""

    link_id: str
    """The link's identifier."""
    batch_id: NotRequired[str]
    """The batch's identifier; only for links of a batch."""
    status: CreatedPayoutLinkStatus
    """funded: waits for a claim; claiming: a claim is being paid; the others are final."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    amount: str
    """The amount that the recipient gets, in currency."""
    title: str
    """Title that the recipient sees; empty if it has none."""
    note: str
    """Message to the recipient; empty if it has none."""
    email: str
    """The e-mail address that the claim link was sent to; empty if it has none."""
    reference: str
    """Your own reference; empty if it has none."""
    expires_at: str
    """Time in ISO 8601, UTC."""
    created_at: str
    """Time in ISO 8601, UTC."""
    payout_id: NotRequired[str]
    """The payout's identifier; only after the claim."""
    claim_address: NotRequired[str]
    """The recipient's address; only after the claim."""
    waiting_for: NotRequired[PayoutWaitingFor]
    """The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network
    has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the
    network fee is too high now; cosign, approval: another key or user has to approve it; network: the network
    or its nodes have a problem; debt: your balance has a debt.
    """
    claim_token: str
    """The secret token for the claim. Its holder can take the money."""
    claim_url: str
    """The page on which the recipient claims the money."""


class CreatePayoutLinks(TypedDict):
    """Several payout links (POST /v1/payout/link/batch). A malformed item fails alone."""

    links: list[CreatePayoutLink]
    """1 to 500 links, in the form of POST /v1/payout/link. A malformed one fails alone."""


class PayoutLinkBatch(TypedDict):
    """The results of a batch, in the request's order."""

    batch_id: str
    """The batch's identifier, which its links repeat."""
    items: list[BatchedPayoutLink]
    """One item for each link of the request."""


class BatchedPayoutLink(TypedDict):
    """The result of an item: the fields of the link, or the error."""

    index: int
    """The item's place in the request, from 0."""
    success: bool
    """true if the link was made. Only then the fields of the link are present."""
    error: NotRequired[BatchedPayoutLinkError]
    """The error; only if the link was not made."""
    link_id: NotRequired[str]
    """The link's identifier."""
    batch_id: NotRequired[str]
    """The batch's identifier."""
    status: NotRequired[CreatedPayoutLinkStatus]
    """funded: waits for a claim."""
    currency: NotRequired[str]
    """The coin's code."""
    network: NotRequired[str]
    """The network's code."""
    amount: NotRequired[str]
    """The amount that the recipient gets, in currency."""
    title: NotRequired[str]
    """Title that the recipient sees; empty if it has none."""
    note: NotRequired[str]
    """Message to the recipient; empty if it has none."""
    email: NotRequired[str]
    """The e-mail address that the claim link was sent to; empty if it has none."""
    reference: NotRequired[str]
    """Your own reference; empty if it has none."""
    expires_at: NotRequired[str]
    """Time in ISO 8601, UTC."""
    created_at: NotRequired[str]
    """Time in ISO 8601, UTC."""
    claim_token: NotRequired[str]
    """The secret token for the claim, shown only once. Its holder can take the money."""
    claim_url: NotRequired[str]
    """The page on which the recipient claims the money, shown only once."""


class BatchedPayoutLinkError(TypedDict):
    """The error of an item of a batch."""

    code: str
    """The error's code, as POST /v1/payout/link would have returned it."""
    message: str
    """The error in words. The wording may change."""


class PayoutLinkPage(TypedDict):
    """A page of a merchant's payout links, newest first (POST /v1/payout/link/list)."""

    limit: NotRequired[int | None]
    """The number of items on a page: 1 to 200. Any other value means 50."""
    offset: NotRequired[int | None]
    """The number of links to skip, from the newest. Default 0."""


class PayoutLinks(TypedDict):
    """A page of payout links."""

    links: list[PayoutLink]
    """Newest first."""


class PayoutLink(TypedDict):
    """A payout link."""

    link_id: str
    """The link's identifier."""
    batch_id: NotRequired[str]
    """The batch's identifier; only for links of a batch."""
    status: CreatedPayoutLinkStatus
    """funded: waits for a claim; claiming: a claim is being paid; the others are final."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    amount: str
    """The amount that the recipient gets, in currency."""
    title: str
    """Title that the recipient sees; empty if it has none."""
    note: str
    """Message to the recipient; empty if it has none."""
    email: str
    """The e-mail address that the claim link was sent to; empty if it has none."""
    reference: str
    """Your own reference; empty if it has none."""
    expires_at: str
    """Time in ISO 8601, UTC."""
    created_at: str
    """Time in ISO 8601, UTC."""
    payout_id: NotRequired[str]
    """The payout's identifier; only after the claim."""
    claim_address: NotRequired[str]
    """The recipient's address; only after the claim."""
    waiting_for: NotRequired[PayoutWaitingFor]
    """The reason why the payout waits; absent if it does not. liquidity: the gateway's wallet on this network
    has too little; limit: a limit of the gateway is reached; freeze: the operator stopped payouts; fee: the
    network fee is too high now; cosign, approval: another key or user has to approve it; network: the network
    or its nodes have a problem; debt: your balance has a debt.
    """


class PayoutLinkLookup(TypedDict):
    """The payout link."""

    link_id: str
    """The link's identifier."""


class PublicPayoutLink(TypedDict):
    """A payout link as the holder of its token sees it."""

    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    amount: str
    """The amount that the recipient gets, in currency."""
    title: str
    """Text from the sender; empty if there is no text."""
    note: str
    """Text from the sender; empty if there is no text."""
    status: CreatedPayoutLinkStatus
    """funded: the link can be claimed; any other status: it can no longer be claimed."""
    expires_at: str
    """Time in ISO 8601, UTC."""


class ClaimLink(TypedDict):
    """A recipient's claim of a payout link (POST /v1/claim/{token})."""

    address: str
    """The recipient's address on the link's network."""
    memo: NotRequired[str | None]
    """The memo, at most 120 characters; only on solana and ton."""


class ClaimedLink(TypedDict):
    """The answer to a claim."""

    status: CreatedPayoutLinkStatus
    """claiming: the payout is not made yet; claimed: it is."""
    payout_id: str
    """The payout's identifier."""


class CreateWallet(TypedDict):
    """A static wallet to create (POST /v1/wallet)."""

    currency: str
    """The coin of the wallet."""
    network: NotRequired[str | None]
    """The network. May be omitted if the coin has only one."""
    order_id: NotRequired[str | None]
    """Your reference for a customer. Each order_id has its own wallet; there is one more without an order_id."""


class Wallet(TypedDict):
    """A static wallet: a permanent address."""

    uuid: str
    """The wallet's identifier."""
    address: str
    """The permanent receiving address."""
    network: str
    """The network that the wallet was made for."""
    currency: str
    """The coin that the wallet was made for. Deposits in the network's other coins are credited too."""
    order_id: str
    """Your own reference; empty if it has none."""
    url: str
    """Reserved; always empty."""


class BlockWallet(TypedDict):
    """A static wallet to block or unblock (POST /v1/wallet/block)."""

    address: str
    """The wallet's address."""
    is_force_block: NotRequired[bool | None]
    """true: block the wallet; false: unblock it. Default true."""


class WalletBlock(TypedDict):
    """The state of a static wallet."""

    uuid: str
    """The wallet's identifier."""
    address: str
    """The wallet's address."""
    blocked: bool
    """true if new deposits are held instead of credited."""


class WalletLookup(TypedDict):
    """A static wallet, by uuid or else by address, and a range of its deposits."""

    uuid: NotRequired[str | None]
    """The wallet's identifier. If it is set, address is ignored."""
    address: NotRequired[str | None]
    """The wallet's address."""
    limit: NotRequired[int | None]
    """The number of deposits to show: 1 to 200. Any other value means 50."""
    offset: NotRequired[int | None]
    """The number of deposits to skip, from the newest. Default 0."""


class WalletInfo(TypedDict):
    """A static wallet with its deposits."""

    uuid: str
    """The wallet's identifier."""
    address: str
    """The permanent receiving address."""
    network: str
    """The network that the wallet was made for."""
    currency: str
    """The coin that the wallet was made for. Deposits in the network's other coins are credited too."""
    order_id: str
    """Your own reference; empty if it has none."""
    url: str
    """Reserved; always empty."""
    blocked: bool
    """true if new deposits are held instead of credited."""
    deposits: list[WalletDeposit]
    """Newest first."""


class WalletDeposit(TypedDict):
    """A deposit to a static wallet."""

    txid: str
    """The transaction's hash."""
    currency: str
    """The coin that was received."""
    amount: str
    """The amount, in currency, before the gateway's fee."""
    status: Literal["awaiting_quorum", "blocked", "credited", "dust", "pending", "refunded", "refunding", "reversed"]
    """awaiting_quorum: a second provider has yet to confirm it; dust: below the network's smallest deposit, not
    credited; blocked: held, because the wallet is blocked; refunding: a refund is being sent; refunded: the
    refund was sent; reversed: its block left the chain.
    """
    at: str
    """The time of its block, in ISO 8601, UTC."""
    network: NotRequired[str]
    """The network; only if it is not the wallet's."""


class WalletQr(TypedDict):
    """A text to draw as a QR code (POST /v1/wallet/qr)."""

    address: str
    """The text to encode, usually an address."""


class CreatePaymentBatch(TypedDict):
    """Payments to create (POST /v1/payment/batch)."""

    on_error: NotRequired[CreatePaymentBatchOnError | None]
    """stop: items are handled in order, and the first failure skips the rest; continue: each item is handled.
    Default continue.
    """
    payments: list[CreatePayment]
    """1 to 5000 payments, in the form of POST /v1/payment. A malformed one fails alone."""


class BatchCreated(TypedDict):
    """An accepted batch."""

    batch_id: str
    """The batch's identifier."""
    kind: BatchCreatedKind
    """The kind of its items."""
    count: int
    """The number of accepted items."""
    status: Literal["pending"]
    """pending: no item has been handled yet."""


class CreatePayoutBatch(TypedDict):
    """Payouts to create (POST /v1/payout/batch)."""

    on_error: NotRequired[CreatePaymentBatchOnError | None]
    """stop: items are handled in order, and the first failure skips the rest; continue: each item is handled.
    Default continue.
    """
    payouts: list[CreatePayout]
    """1 to 5000 payouts, in the form of POST /v1/payout. A malformed one fails alone."""


class CreateRefundBatch(TypedDict):
    """Refunds to create (POST /v1/refund/batch)."""

    on_error: NotRequired[CreatePaymentBatchOnError | None]
    """stop: items are handled in order, and the first failure skips the rest; continue: each item is handled.
    Default continue.
    """
    refunds: list[CreateRefund]
    """1 to 5000 refunds, in the form of POST /v1/payment/refund. A malformed one fails alone."""


class BatchLookup(TypedDict):
    """A batch and a range of its items (POST /v1/batch/info)."""

    batch_id: str
    """The batch's identifier."""
    limit: NotRequired[int | None]
    """The number of items to show: 1 to 5000. Default, and any other value: all."""
    offset: NotRequired[int | None]
    """The number of items to skip, from the first. Default 0."""


class BatchInfo(TypedDict):
    """A batch with the results of its items, in their order."""

    batch_id: str
    """The batch's identifier."""
    kind: BatchCreatedKind
    """The kind of its items."""
    status: Literal["completed", "pending", "processing"]
    """completed: all items are handled, with or without success."""
    on_error: Literal["continue", "stop"]
    """stop: a failure skips the items after it; continue: it does not."""
    count: int
    """The number of all items."""
    succeeded: int
    """The number of successful items so far."""
    failed: int
    """The number of failed items so far, with the skipped ones."""
    created_at: str
    """Time in ISO 8601, UTC."""
    completed_at: str | None
    """Time in ISO 8601, UTC; null until the batch is completed."""
    items: list[BatchItem]
    """The requested range of items, in the order of the batch."""


class BatchItem(TypedDict):
    """One item of a batch."""

    index: int
    """The item's place in the request, from 0."""
    order_id: str
    """The item's order_id; empty if it has none."""
    status: Literal["error", "pending", "success"]
    """pending: the item has not been handled yet."""
    result: dict[str, Any] | None
    """The created object; null unless status is success."""
    error: BatchItemError | None
    """The reason of the failure; null unless status is error."""


class BatchItemError(TypedDict):
    """The error of an item, as its own endpoint would have returned it."""

    code: str
    """The error's code. batch.skipped: an earlier item failed."""
    message: str
    """The error in words. The wording may change."""


class RegisterWebhook(TypedDict):
    """The endpoint that receives your webhooks (POST /v1/webhooks)."""

    url: str
    """A public https URL. A host in Unicode is stored as punycode."""


class WebhookEndpoint(TypedDict):
    """A registered endpoint. Its secret is shown only once."""

    endpoint_id: str
    """The endpoint's identifier."""
    url: str
    """The URL that receives webhooks."""
    secret: str
    """The secret key of X-Webhook-Signature."""


class ListDeliveries(TypedDict):
    """A page of the delivery log (POST /v1/webhooks/deliveries)."""

    limit: NotRequired[int | None]
    """The number of items on a page: 1 to 200. Any other value means 50."""
    cursor: NotRequired[str | None]
    """The next_cursor of the previous page. Default: the first page."""
    status: NotRequired[Literal["dead", "delivered", "pending", "retrying", ""] | None]
    """Only deliveries with this status. Default: all."""
    uuid: NotRequired[str | None]
    """The identifier of the event's payment, wallet or payout."""
    event: NotRequired[ListDeliveriesEvent | None]
    """Only deliveries of this event. Default: all."""


class DeliveryPage(TypedDict):
    """Deliveries, and where the next page begins."""

    items: list[Delivery]
    """Newest first."""
    next_cursor: str | None
    """The cursor of the next page; null on the last page."""


class Delivery(TypedDict):
    """A webhook and the state of its delivery."""

    delivery_id: str
    """The delivery's identifier, which is the X-Webhook-Id of every attempt."""
    event: Literal[
        "invoice.expired",
        "invoice.paid",
        "invoice.paid_over",
        "invoice.wrong_amount",
        "payout.approved",
        "payout.awaiting_cosign",
        "payout.broadcasting",
        "payout.cancelled",
        "payout.confirmed",
        "payout.failed",
        "payout.pending",
        "payout.sent",
        "wallet.paid",
    ]
    """The event's name."""
    uuid: str
    """The identifier of the event's payment, wallet or payout."""
    url: str
    """The URL of the next attempt or, once finished, of the last one."""
    status: Literal["dead", "delivered", "pending", "retrying"]
    """pending: not tried yet; retrying: waits for another attempt; delivered: your endpoint accepted it; dead:
    the last attempt failed.
    """
    attempts: int
    """The number of attempts since it was last queued."""
    last_status_code: int | None
    """The HTTP status of the last answer; null without an answer."""
    last_error: str | None
    """The error of the last attempt; null before the first failure, and after a success."""
    next_attempt_at: str | None
    """The time of the next attempt in ISO 8601, UTC; null once it is delivered or dead."""
    created_at: str
    """Time in ISO 8601, UTC."""
    delivered_at: str | None
    """Time in ISO 8601, UTC."""
    request_id: str
    """The X-Request-Id of the call that made the object; empty if it is unknown."""
    payload: dict[str, Any] | None
    """The webhook's body; null once it is deleted, 30 days after the event."""


class Redeliver(TypedDict):
    """A delivery to send again (POST /v1/webhooks/redeliver)."""

    delivery_id: str
    """The delivery's identifier in the delivery log."""


class TryWebhook(TypedDict):
    """A test webhook to your endpoint (POST /v1/webhooks/test)."""

    event: NotRequired[ListDeliveriesEvent | None]
    """The event to send. Default invoice.paid."""


class WebhookTrial(TypedDict):
    """The result of a test webhook. It is not in the delivery log and is not repeated."""

    status_code: int | None
    """The HTTP status of the last answer; null without an answer."""
    delivered: bool
    """true if the answer was 2xx."""
    duration_ms: int
    """Milliseconds until the answer or the failure."""
    error: str | None
    """The error; null if it was delivered."""


class AllowlistChange(TypedDict):
    """The source addresses that may use your keys (POST /v1/ip-allowlist)."""

    ips: NotRequired[list[str] | None]
    """IP addresses, and networks in CIDR notation. Omit it to read the list; [] allows all addresses."""


class IpAllowlist(TypedDict):
    """The source addresses that may use your keys; an empty list allows all."""

    ips: list[str]
    """IP addresses, and networks in CIDR notation."""


class AddRule(TypedDict):
    """A rule that shares your credits with another merchant (POST /v1/split/rule)."""

    recipient_merchant_id: str
    """The merchant of this gateway that receives the share."""
    percent: float
    """Percent of the net credit: 0.01 to 100, at most 2 fractional digits. All rules together: at most 100."""
    title: NotRequired[str | None]
    """Your name for the rule, at most 255 characters."""


class SplitRule(TypedDict):
    """A rule, in force or waiting for its co-signature."""

    rule_id: str
    """The rule's identifier."""
    recipient_merchant_id: str
    """The merchant that receives the share."""
    percent: float
    """Percent of the net credit."""
    title: str
    """Your name for the rule; empty if it has none."""
    status: Literal["active", "awaiting_cosign"]
    """active: the rule applies; awaiting_cosign: it shares nothing until another key or user adds the same rule."""
    created_at: str
    """The time of creation, in ISO 8601, UTC."""


class SplitRules(TypedDict):
    """All rules of a merchant, newest first."""

    items: list[SplitRule]
    """All rules, newest first."""


class RuleLookup(TypedDict):
    """The rule to delete (POST /v1/split/rule/delete)."""

    rule_id: str
    """The rule's identifier."""


class DeletedRule(TypedDict):
    """A deleted rule."""

    rule_id: str
    """The rule's identifier."""
    deleted: bool
    """Always true."""


class SplitConfig(TypedDict):
    """The settings of a merchant's rules, and its earnings from the rules of others."""

    enabled: bool
    """true if rules apply to new credits."""
    refund_hold_hours: int
    """Hours that a new share is held after its credit."""
    earnings_by_asset: dict[str, str]
    """The shares received from others by coin, in the ledger's smallest units, with shares that repaid a debt."""


class SetSplits(TypedDict):
    """The settings of your rules from now on (POST /v1/split/config/set)."""

    enabled: NotRequired[bool | None]
    """true: rules apply to new credits. Omit it to keep the setting."""
    refund_hold_hours: NotRequired[int | None]
    """Hours that a share is held after its credit: 0 to 2160. Omit it to keep the setting."""


class Health(TypedDict):
    """How the process or the gateway is."""

    status: HealthStatus
    """Always ok."""


class Readiness(TypedDict):
    """How the gateway is, and what an operator should look at."""

    status: HealthStatus
    """Always ok."""
    attention: list[str]
    """What does not keep this process from serving."""
    audit_passed_at: str | None
    """When the books were last found right, as ISO 8601 in UTC; null: not yet."""


class PaymentEvent(TypedDict):
    """The body of an invoice.* event: the payment as it was when it happened."""

    uuid: str
    """The identifier of the event's payment, wallet or payout."""
    order_id: str
    """Your own reference; empty if it has none."""
    txid: str
    """The transaction's hash; empty until it is known."""
    test: NotRequired[bool]
    """true if POST /v1/webhooks/test sent it; else absent."""
    type: Literal["payment"]
    """The kind of object: payment, wallet or payout."""
    amount: str
    """The price, in currency."""
    currency: str
    """The currency of the price."""
    payment_amount: str | None
    """The sum of confirmed deposits, in payer_currency; null if there are none."""
    payer_amount: str
    """The amount to pay, in payer_currency; empty before a coin is chosen."""
    payer_currency: str
    """The coin that the buyer pays in; empty before it is chosen."""
    status: Literal["expired", "paid", "paid_over", "wrong_amount"]
    """The payment_status."""
    revision: int
    """The number of status changes of the payment so far. Deduplicate by uuid, status and revision."""
    is_final: bool
    """true if the status is final. A late deposit or a reorg can reopen the payment."""
    additional_data: str
    """Your private text, as you sent it."""


class WalletEvent(TypedDict):
    """The body of wallet.paid: a deposit that was credited."""

    uuid: str
    """The identifier of the event's payment, wallet or payout."""
    order_id: str
    """Your own reference; empty if it has none."""
    txid: str
    """The transaction's hash; empty until it is known."""
    test: NotRequired[bool]
    """true if POST /v1/webhooks/test sent it; else absent."""
    type: Literal["wallet"]
    """The kind of object: payment, wallet or payout."""
    address: str
    """The wallet's address."""
    network: str
    """The network of the deposit."""
    currency: str
    """The coin that the wallet was made for."""
    payment_amount: str
    """The amount of the deposit, in payer_currency, before the gateway's fee."""
    payer_currency: str
    """The coin of the deposit."""
    status: Literal["paid"]
    """Always paid."""
    is_final: bool
    """Always true."""


class PayoutEvent(TypedDict):
    """The body of a payout.* event: the payout as it was when it happened."""

    uuid: str
    """The identifier of the event's payment, wallet or payout."""
    order_id: str
    """Your own reference; empty if it has none."""
    txid: str
    """The transaction's hash; empty until it is known."""
    test: NotRequired[bool]
    """true if POST /v1/webhooks/test sent it; else absent."""
    type: Literal["payout"]
    """The kind of object: payment, wallet or payout."""
    amount: str
    """The requested amount, in currency."""
    currency: str
    """The coin's code."""
    network: str
    """The network's code."""
    address: str
    """The recipient's address."""
    status: PaymentRefundStatus
    """The payout's status. The event's name is more precise."""
    is_final: bool
    """true if the status is paid, fail or cancel."""
    commission: NotRequired[str]
    """The part of the network fee that was not returned, in currency; only in payout.failed."""


class Error(TypedDict):
    """A refusal, or a fault of the gateway."""

    error: ErrorDetail


class ErrorDetail(TypedDict):
    """Why there is no result."""

    code: str
    """The reason of the refusal: branch on it.

    New codes can be added.
    """
    message: str
    """In words, which may change."""


class TooManyRequests(TypedDict):
    """A limit is used up."""

    state: Literal[1]
    """Always 1."""
    message: str
    """In words, which may change."""

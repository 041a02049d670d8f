"""What the API answers: one type for each object, from which its documentation is made.

Used by api.routes, and by the tests of views. Source: API reference, "Resources and their fields".
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.http.requests import UuidText


class Answer(Struct, forbid_unknown_fields=True, kw_only=True):
    """An object of the API as a view renders it."""


class AcceptedMethod(Answer, kw_only=True):
    """A coin on a network."""

    currency: Annotated[str, Meta(examples=["USDT"])]
    network: Annotated[str, Meta(examples=["ethereum"])]


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


class BalanceItem(Answer, kw_only=True):
    """What a merchant holds of one coin, over all its networks."""

    currency: str
    available: Annotated[str, Meta(examples=["98.125"])]
    maturing: Annotated[str, Meta(description="Credited, not yet deep enough in the chain.", examples=["0"])]
    payout_held: Annotated[str, Meta(examples=["0"])]
    hold: Annotated[str, Meta(examples=["0"])]
    debt: Annotated[str, Meta(examples=["0"])]
    total: Annotated[str, Meta(examples=["98.125"])]


class PersonalItem(Answer, kw_only=True):
    """What the merchant's owner holds of one coin."""

    currency: str
    available: Annotated[str, Meta(examples=["0"])]


class Balance(Answer, kw_only=True):
    """Every coin, always."""

    items: list[BalanceItem]
    personal: list[PersonalItem]


class CurrencyNetwork(Answer, kw_only=True):
    """A network that carries a coin."""

    network: str
    contract: Annotated[str | None, Meta(description="null for the network's own coin.")]
    decimals: int
    precision: int
    min_minor: Annotated[str, Meta(description="The smallest deposit, in minor units of this network's token.")]
    confirmations: int
    maturity: int
    is_available: bool


class Currency(Answer, kw_only=True):
    """A coin to be paid in."""

    currency: str
    name: str
    networks: list[CurrencyNetwork]


class PricingCurrency(Answer, kw_only=True):
    """A currency to set prices in."""

    currency: str
    kind: Literal["fiat", "crypto"]
    precision: int


class Currencies(Answer, kw_only=True):
    """The catalogue."""

    currencies: list[Currency]
    pricing_currencies: list[PricingCurrency]


class ExchangeRate(Answer, kw_only=True, rename={"from_": "from"}):
    """What one unit of a currency is worth."""

    from_: Annotated[str, Meta(examples=["ETH"])]
    to: Literal["USDT"]
    course: Annotated[str, Meta(description="USDT for one unit.", examples=["3001.25"])]
    updated_at: Annotated[str, Meta(description="ISO 8601.", examples=["2026-01-31T12:00:00.000Z"])]


class IpAllowlist(Answer, kw_only=True):
    """The source addresses from which a merchant's keys may sign; none stands for all."""

    ips: list[str]


class WebhookEndpoint(Answer, kw_only=True):
    """A registered endpoint; the secret is shown this once."""

    endpoint_id: UuidText
    url: str
    secret: str


class Health(Answer, kw_only=True):
    """How the process or the gateway is."""

    status: Literal["ok"]


class Readiness(Answer, kw_only=True):
    """How the gateway is, and what an operator should look at."""

    status: Literal["ok"]
    attention: Annotated[list[str], Meta(description="What does not keep this process from serving.")]
    audit_passed_at: Annotated[
        str | None, Meta(description="When the books were last found right; null: not yet, since the installation.")
    ]


class ErrorDetail(Answer, kw_only=True):
    """What went wrong: branch on the code, the text may change."""

    code: str
    message: str


class ErrorBody(Answer, kw_only=True):
    """The envelope of every error."""

    error: ErrorDetail

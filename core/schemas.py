"""What requests may say and what answers look like, as types.

The same types refuse bad requests, travel to the actors and make up the OpenAPI document, so that none of the three can
drift. Read by api (bodies), actors (messages) and the tests of core.views (answers). Source: API reference,
"Resources and their fields" and "Endpoints".
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, NoReturn, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, inspect

from core import allowlist
from core.egress import EgressRefused, check_public_url
from core.errors import (
    AllowlistBadIp,
    DomainError,
    PaymentBadAccuracy,
    PaymentBadAmount,
    PaymentBadSubtract,
    PaymentBadUrlCallback,
    PaymentBadUuid,
    PaymentNoLookup,
    PaymentUnknownCurrency,
    PaymentUnknownToCurrency,
    PaymentUnsupportedNetwork,
    PayMethodNotAccepted,
    PayUnknownCurrency,
    RequestBadField,
    WebhookBadUrl,
    WebhookNoUrl,
)

LIFETIME_MIN_S: Final = 300
LIFETIME_MAX_S: Final = 43_200
LIFETIME_DEFAULT_S: Final = 3_600
ACCURACY_MAX_PERCENT: Final = 5

# `$` also matches before a last line feed, in Python though not in JSON Schema; `(?!\n)` makes the two agree.
_END: Final = r"(?!\n)$"
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x20\x7f/?#\\@:\[\]]+)(?::[0-9]{1,5})?"
_EMAIL_ATOM: Final = r"[^\s\x00-\x20\x7f@<>\"(),:;\\\[\].]+(?:\.[^\s\x00-\x20\x7f@<>\"(),:;\\\[\].]+)*"

# An empty optional text counts as absent, so every pattern of one lets it pass.
Text = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
WebUrl = Annotated[
    str,
    Meta(
        max_length=2048,
        pattern=rf"^(?:https?://{_HOST}(?:[/?#][^\s\x00-\x20\x7f\\]*)?)?{_END}",
        description="An absolute http(s) address.",
        examples=["https://shop.example/orders/1042"],
    ),
]
Email = Annotated[
    str, Meta(max_length=254, pattern=rf"^(?:{_EMAIL_ATOM}@{_EMAIL_ATOM})?{_END}", examples=["buyer@mail.example"])
]
OrderId = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"^(?!payoutlink:|refund:|autowithdraw:)[^\x00]*$",
        description="The merchant's reference; repeats with a live one return the same object.",
        examples=["order-1042"],
    ),
]
UuidText = Annotated[
    str,
    Meta(
        pattern=rf"^(?:[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}})?{_END}",
        examples=["0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"],
    ),
]
Amount = Annotated[
    str,
    Meta(
        max_length=49,
        pattern=rf"^[0-9]{{1,30}}(?:\.[0-9]{{1,18}})?{_END}",
        description="A decimal string with no more fractional digits than the currency has.",
        examples=["125.50"],
    ),
]
Code = Annotated[str, Meta(max_length=32, pattern=rf"^[!-~]+{_END}", examples=["USDT"])]
CodeOrEmpty = Annotated[str, Meta(max_length=32, pattern=rf"^[!-~]*{_END}")]

# What msgspec raises for a value of the wrong kind, and for text with unpaired surrogates where it wanted another kind.
_NOT_CONVERTED: Final = (msgspec.ValidationError, UnicodeEncodeError)


class Request(Struct, kw_only=True, omit_defaults=True):
    """A request's body. Unknown fields are ignored; a subclass says which error refuses each of its fields."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({})
    # For required fields that are missing or empty, where that has an error of its own.
    absences: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({})

    def check(self, own_hosts: frozenset[str]) -> None:
        """Refuse what single fields cannot show, and settle what the rules clamp."""


R = TypeVar("R", bound=Request)


class Empty(Request, kw_only=True, omit_defaults=True):
    """A body that says nothing."""


class CreatePayment(Request, kw_only=True, omit_defaults=True):
    """An invoice to create (POST /v1/payment)."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType(
        {
            "amount": PaymentBadAmount,
            "currency": PaymentUnknownCurrency,
            "network": PaymentUnsupportedNetwork,
            "to_currency": PaymentUnknownToCurrency,
            "subtract": PaymentBadSubtract,
            "accuracy_payment_percent": PaymentBadAccuracy,
            "url_callback": PaymentBadUrlCallback,
        }
    )

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
        lifetime_s = LIFETIME_DEFAULT_S if self.lifetime is None else self.lifetime
        self.lifetime = min(max(lifetime_s, LIFETIME_MIN_S), LIFETIME_MAX_S)
        if self.url_callback is not None:
            _check_callback(self.url_callback, own_hosts)


def _check_callback(url: str, own_hosts: frozenset[str]) -> None:
    try:
        check_public_url(url, allow_private=False, require_https=False, own_hosts=own_hosts)
    except EgressRefused as refusal:
        raise PaymentBadUrlCallback(f"url_callback: {refusal}") from refusal


class PaymentLookup(Request, kw_only=True, omit_defaults=True):
    """Which payment is meant: by uuid, or else by order_id."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({"uuid": PaymentBadUuid})

    uuid: UuidText | None = None
    order_id: Annotated[Text, Meta(max_length=255, examples=["order-1042"])] | None = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a lookup by nothing."""
        if self.uuid is None and self.order_id is None:
            raise PaymentNoLookup


class MethodChoice(Request, kw_only=True, omit_defaults=True):
    """The buyer's choice (POST /v1/pay/{id}/select)."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType(
        {"currency": PayUnknownCurrency, "network": PayMethodNotAccepted}
    )

    currency: Code
    network: Annotated[CodeOrEmpty, Meta(description="May be left out where the coin has one network.")] | None = None


class SelectMethod(Struct, kw_only=True):
    """The message that carries a choice to its actor, with the invoice that the path named."""

    invoice_id: UUID
    currency: str
    network: str | None


class RegisterWebhook(Request, kw_only=True, omit_defaults=True):
    """Where webhooks go (POST /v1/webhooks)."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({"url": WebhookBadUrl})
    absences: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({"url": WebhookNoUrl})

    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="A public https address.",
            examples=["https://shop.example/hooks"],
        ),
    ]


class AllowlistChange(Request, kw_only=True, omit_defaults=True):
    """The source addresses to allow (POST /v1/ip-allowlist)."""

    refusals: ClassVar[Mapping[str, type[DomainError]]] = MappingProxyType({"ips": AllowlistBadIp})

    ips: (
        Annotated[
            list[Annotated[str, Meta(examples=["203.0.113.7", "198.51.100.0/24"])]],
            Meta(
                max_length=allowlist.ENTRIES_MAX,
                description="Addresses, and networks in CIDR notation. Without it the list is read; [] ends it.",
            ),
        ]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse what is no address and no network."""
        allowlist.parse(self.ips or [])


class SetAllowlist(Struct, kw_only=True):
    """The message that carries a list to its actor, with the address from which it was sent."""

    ips: list[str] | None
    source: str | None


class RateQuery(Request, kw_only=True, omit_defaults=True):
    """Which rates are asked for (POST /v1/exchange-rate/list)."""

    currency_from: Annotated[Text, Meta(description="One currency; all without it.", examples=["ETH"])] | None = None


def read_request(schema: type[R], fields: Mapping[str, Any], *, own_hosts: frozenset[str]) -> R:
    """Read a JSON object as a request, or raise the error of the first field, in the schema's order, that is wrong."""
    optional = _optional_texts(schema)
    given = {
        name: fields[name]
        for name in schema.__struct_fields__
        if name in fields and (fields[name] != "" or name not in optional)
    }
    try:
        request = msgspec.convert(given, schema)
    except _NOT_CONVERTED as error:
        _refuse(schema, given, error)
    for name in _texts(schema):
        text = getattr(request, name)
        # Neither UTF-8 nor PostgreSQL knows unpaired surrogates; only JSON's \u escapes can smuggle them in.
        if text is not None and not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            raise _refusal(schema, name, "has an unpaired surrogate")
    request.check(own_hosts)
    return request


def _refuse(schema: type[Request], given: Mapping[str, Any], error: Exception) -> NoReturn:
    """Find the field that msgspec refused. Its message tells too, but as text that a release may change."""
    for field in msgspec.structs.fields(schema):
        if field.required and given.get(field.name) in (None, ""):
            raise schema.absences.get(field.name, _refusal_type(schema, field.name))(
                f"{field.name}: is missing"
            ) from error
        if field.name not in given:
            continue
        try:
            msgspec.convert(given[field.name], field.type)
        except _NOT_CONVERTED as fault:
            raise _refusal(schema, field.name, _reason(str(fault))) from fault
    raise AssertionError("msgspec refused a field") from error


def _reason(fault: str) -> str:
    """Say in an answer what msgspec says, but for a pattern, which tells a caller nothing, and the value that he sent.

    The field's description in the OpenAPI document shows both.
    """
    if "matching regex" in fault:
        return "does not have the form that it must have"
    if fault.startswith("Invalid enum value"):
        return "is none of the values that it may have"
    return fault


def _refusal(schema: type[Request], name: str, why: str) -> DomainError:
    return _refusal_type(schema, name)(f"{name}: {why}")


def _refusal_type(schema: type[Request], name: str) -> type[DomainError]:
    return schema.refusals.get(name, RequestBadField)


def _is_text(kind: inspect.Type) -> bool:
    match kind:
        case inspect.UnionType(types=kinds):
            return any(map(_is_text, kinds))
        case inspect.Metadata(type=inner):
            return _is_text(inner)
        case _:
            return isinstance(kind, inspect.StrType | inspect.LiteralType)


@functools.cache
def _texts(schema: type[Request]) -> tuple[str, ...]:
    """Return the fields of a schema that hold text."""
    return tuple(field.name for field in msgspec.structs.fields(schema) if _is_text(inspect.type_info(field.type)))


@functools.cache
def _optional_texts(schema: type[Request]) -> frozenset[str]:
    """Return those of them that may be absent, and are so when they are empty.

    Not amounts: whoever sends an empty one, by some mistake, does not ask for all that there is.
    """
    optional = (field for field in msgspec.structs.fields(schema) if not field.required)
    return frozenset(_texts(schema)) & {field.name for field in optional if _takes_nothing(field.type)}


def _takes_nothing(kind: Any) -> bool:
    try:
        msgspec.convert("", kind)
    except msgspec.ValidationError:
        return False
    return True


# Answers ------------------------------------------------------------------------------------------------------------


class Answer(Struct, forbid_unknown_fields=True, kw_only=True):
    """An object of the API as core.views renders it."""


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


class ErrorDetail(Answer, kw_only=True):
    """What went wrong: branch on the code, the text may change."""

    code: str
    message: str


class ErrorBody(Answer, kw_only=True):
    """The envelope of every error."""

    error: ErrorDetail

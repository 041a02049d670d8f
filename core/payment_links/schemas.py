"""Declares requests and answers of payment links, for merchants and for buyers. Read as core.http.requests is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from core import errors
from core.http.answers import Answer
from core.http.fields import MOMENT_EXAMPLE, CreatedAt
from core.http.requests import Amount, Code, CodeOrEmpty, Email, Request, Text, UuidText
from core.merchants.terms_schemas import AcceptedMethod

AmountMode = Literal["fixed", "open", "range"]

EXPIRES_IN_MAX_S: Final = 10 * 365 * 86_400
OFFSET_MAX: Final = 100_000
# The furthest offset of a page of a link's payments; it is found at once among any number of payments.
PAYMENTS_OFFSET_MAX: Final = 10_000

# The amounts that a mode reads, each with its error; the others are ignored.
_READ: Final[Mapping[AmountMode, Mapping[str, type[errors.DomainError]]]] = MappingProxyType(
    {
        "fixed": {"amount_fixed": errors.PaylinkBadAmount},
        "open": {"amount_min": errors.PaylinkBadMin},
        "range": {"amount_min": errors.PaylinkBadMin, "amount_max": errors.PaylinkBadMax},
    }
)
_AMOUNTS: Final = ("amount_fixed", "amount_min", "amount_max")


def read_amount(value: object, *, error: type[errors.DomainError], name: str = "amount") -> str:
    """Return a value that has an amount's form, or raise `error`. Its size is judged with its currency."""
    if value is None:
        raise error(f"{name} is missing.")
    try:
        return msgspec.convert(value, Amount)
    except (msgspec.ValidationError, UnicodeEncodeError) as fault:
        raise error(f"{name} must be a decimal string, such as 125.50.") from fault


def _amount(description: str) -> Meta:
    """Describe an amount that is read in some cases only, and may be anything in the others."""
    shape = {"type": "string", "maxLength": 49, "pattern": r"^[0-9]{1,30}(?:\.[0-9]{1,18})?$"}
    either = {"anyOf": [shape, {"type": "null"}]}
    return Meta(description=description, examples=["25.00"], extra_json_schema=either)


AmountFixed = Annotated[
    Any,
    _amount(
        "The price, in currency. Mode fixed requires it; the others ignore it. At least one coin"
        " must allow a payment of this size."
    ),
]
AmountMin = Annotated[
    Any,
    _amount(
        "The smallest amount that a buyer may pay, in currency. Mode range requires it; it is optional in mode open."
    ),
]
AmountMax = Annotated[
    Any, _amount("The largest amount that a buyer may pay, in currency. Mode range requires it; the others ignore it.")
]
BuyersAmount = Annotated[
    Any, _amount("The amount that the buyer pays, in the link's currency. Ignored if the link has a fixed price.")
]


class CreatePaymentLink(Request, kw_only=True, omit_defaults=True):
    """A payment link to create (POST /v1/payment/link)."""

    refusals: ClassVar = {
        "amount_mode": errors.PaylinkBadMode,
        "currency": errors.PaylinkUnknownCurrency,
        "pinned_currency": errors.PaylinkBadPin,
        "pinned_network": errors.PaylinkBadPin,
    }
    breaches: ClassVar = (errors.PaylinkBadAmount, errors.PaylinkBadMin, errors.PaylinkBadMax)

    amount_mode: Annotated[
        AmountMode,
        Meta(
            description="fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two"
            " bounds."
        ),
    ]
    currency: Annotated[
        Code, Meta(description="The currency of the price: a fiat currency or a coin.", examples=["USD"])
    ]
    amount_fixed: AmountFixed = None
    amount_min: AmountMin = None
    amount_max: AmountMax = None
    pinned_currency: (
        Annotated[CodeOrEmpty, Meta(description="The coin that buyers pay in. Without it the buyer chooses.")] | None
    ) = None
    pinned_network: (
        Annotated[CodeOrEmpty, Meta(description="The coin's network. May be omitted if the coin has only one.")] | None
    ) = None
    title: Annotated[Text, Meta(max_length=255, description="Shown on the page.", examples=["Coffee"])] | None = None
    description: Annotated[Text, Meta(max_length=4096, description="Shown on the page.")] | None = None
    expires_in: Annotated[
        int,
        Meta(
            ge=0,
            le=EXPIRES_IN_MAX_S,
            description="Seconds until the link expires, at most ten years. Default 0: it never expires.",
        ),
    ] = 0

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse what the mode needs and has not, and forget what it does not read."""
        read = _READ[self.amount_mode]
        for name in _AMOUNTS:
            given = getattr(self, name)
            if name not in read:
                setattr(self, name, None)
            elif given is not None or self.amount_mode != "open":
                read_amount(given, error=read[name], name=name)


class PaymentLinkLookup(Request, kw_only=True, omit_defaults=True):
    """The payment link."""

    refusals: ClassVar = {"link_id": errors.PaylinkBadId}

    # The pattern of optional ids lets an empty text pass; a required field refuses that as missing.
    link_id: Annotated[UuidText, Meta(min_length=1, description="The link's identifier.")]


class PaymentLinkInfo(PaymentLinkLookup, kw_only=True, omit_defaults=True):
    """A payment link and a page of its payments (POST /v1/payment/link/info)."""

    limit: (
        Annotated[int, Meta(description="The number of payments to show: 1 to 200. Any other value means 50.")] | None
    ) = None
    offset: Annotated[
        int,
        Meta(ge=0, le=PAYMENTS_OFFSET_MAX, description="The number of payments to skip, from the newest. Default 0."),
    ] = 0


class PaymentLinkPage(Request, kw_only=True, omit_defaults=True):
    """A page of a merchant's payment links, newest first (POST /v1/payment/link/list)."""

    limit: (
        Annotated[int, Meta(description="The number of links on a page: 1 to 200. Any other value means 50.")] | None
    ) = None
    offset: Annotated[
        int, Meta(ge=0, le=OFFSET_MAX, description="The number of links to skip, from the newest. Default 0.")
    ] = 0


class TogglePaymentLink(PaymentLinkLookup, kw_only=True, omit_defaults=True):
    """A payment link to switch on or off (POST /v1/payment/link/toggle)."""

    active: Annotated[
        bool, Meta(description="false: the link's page and checkout answer as if the link did not exist.")
    ]


class BuyersOrder(Request, kw_only=True, omit_defaults=True):
    """A buyer's order on a link (POST /v1/link/{link_id}/checkout). Other fields have no effect."""

    refusals: ClassVar = {"currency": errors.PayUnknownCurrency, "network": errors.PayMethodNotAccepted}

    amount: BuyersAmount = None
    currency: Annotated[CodeOrEmpty, Meta(description="The coin that the buyer pays in.", examples=["USDT"])] | None = (
        None
    )
    network: (
        Annotated[CodeOrEmpty, Meta(description="The coin's network. May be omitted if the coin has only one.")] | None
    ) = None
    payer_email: (
        Annotated[Email, Meta(description="The buyer's e-mail address, for a receipt, if the gateway sends e-mail.")]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Replace a malformed amount with '': a link that ignores amounts then still works."""
        try:
            self.amount = None if self.amount is None else read_amount(self.amount, error=errors.PaylinkNotPositive)
        except errors.PaylinkNotPositive:
            self.amount = ""


class CheckOut(Struct, kw_only=True):
    """The message that carries an order to its actor, with the link that the path named."""

    link_id: UUID
    amount: str | None = None
    currency: str | None = None
    network: str | None = None
    payer_email: str | None = None
    # The widest block of addresses that the buyer's counts in.
    source: str = ""


# Answers ------------------------------------------------------------------------------------------------------------


class CreatedPaymentLink(Answer, kw_only=True):
    """A new payment link."""

    link_id: Annotated[UuidText, Meta(description="The link's identifier.")]
    url: Annotated[str, Meta(description="The page to send buyers to.")]


class PaymentLink(CreatedPaymentLink, kw_only=True):
    """A payment link. Fields that are not set are absent."""

    title: Annotated[str | UnsetType, Meta(description="Shown on the page.")] = UNSET
    description: Annotated[str | UnsetType, Meta(description="Shown on the page.")] = UNSET
    amount_mode: Annotated[
        AmountMode,
        Meta(
            description="fixed: you set the amount; open: the buyer sets it; range: the buyer sets it within two"
            " bounds."
        ),
    ]
    currency: Annotated[str, Meta(description="The currency of the price.", examples=["USD"])]
    amount_fixed: Annotated[str | UnsetType, Meta(description="The price, in currency; only in mode fixed.")] = UNSET
    amount_min: Annotated[
        str | UnsetType, Meta(description="The smallest amount, in currency; only in modes open and range.")
    ] = UNSET
    amount_max: Annotated[str | UnsetType, Meta(description="The largest amount, in currency; only in mode range.")] = (
        UNSET
    )
    pinned_currency: Annotated[str | UnsetType, Meta(description="The coin that buyers pay in, if you set one.")] = (
        UNSET
    )
    pinned_network: Annotated[str | UnsetType, Meta(description="The network of that coin.")] = UNSET
    active: Annotated[bool, Meta(description="true if buyers can use the link, until it expires.")]
    expires_at: Annotated[
        str | UnsetType,
        Meta(
            description="The time of expiry in ISO 8601, UTC; absent if the link never expires.",
            examples=[MOMENT_EXAMPLE],
        ),
    ] = UNSET
    created_at: CreatedAt


class PaymentLinks(Answer, kw_only=True):
    """A page of payment links."""

    items: Annotated[list[PaymentLink], Meta(description="Newest first.")]


class LinkPayment(Answer, kw_only=True):
    """A payment that a buyer made by a link."""

    uuid: Annotated[UuidText, Meta(description="The payment's identifier.")]
    status: Annotated[
        Literal["select", "check", "paid", "paid_over", "wrong_amount", "expired"],
        Meta(description="The payment's status."),
    ]
    amount: Annotated[str, Meta(description="The price, in currency.", examples=["25.00"])]
    currency: Annotated[str, Meta(description="The currency of the price.", examples=["USD"])]
    created_at: CreatedAt


class PaymentLinkWithPayments(PaymentLink, kw_only=True):
    """A payment link with some of its payments."""

    payments: Annotated[list[LinkPayment], Meta(description="Newest first.")]


class ToggledPaymentLink(Answer, kw_only=True):
    """The new state of a link."""

    link_id: Annotated[UuidText, Meta(description="The link's identifier.")]
    active: Annotated[bool, Meta(description="true if buyers can use the link, until it expires.")]


class PublicPaymentLink(PaymentLink, kw_only=True):
    """A payment link as its buyers see it."""

    merchant_name: Annotated[str, Meta(description="The name of the merchant.", examples=["Corner Shop"])]
    accepted: Annotated[
        list[AcceptedMethod],
        Meta(description="The methods to pay by: the coin of the link, or all that the merchant accepts."),
    ]

"""Declares requests and answers about how a merchant is paid: methods, discounts, tolerance. As core.http.requests."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Struct

from core import errors
from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode
from core.http.requests import Code, CodeOrEmpty, Request

# Repetitions included; the catalogue is far shorter.
METHODS_MAX: Final = 200
DISCOUNT_MAX_PERCENT: Final = 99
ACCURACY_MAX_PERCENT: Final = 5
# How JSON Schema says "at most 4 fractional digits".
_DIGITS: Final = MappingProxyType({"multipleOf": 0.0001})


class MethodName(Struct, kw_only=True, omit_defaults=True):
    """A coin on a network, as a merchant names it."""

    currency: Annotated[Code, Meta(description="The coin.")]
    network: (
        Annotated[CodeOrEmpty, Meta(description="The network. May be omitted if the coin has only one.")] | None
    ) = None


class SetAccepted(Request, kw_only=True, omit_defaults=True):
    """The methods that a merchant accepts (POST /v1/payment/accepted)."""

    refusals: ClassVar = {"accepted": errors.AcceptedUnknownMethod}

    accepted: (
        Annotated[
            list[MethodName],
            Meta(
                max_length=METHODS_MAX,
                description="The new list, at most 200 methods. Omit it to read the list; [] accepts every method.",
            ),
        ]
        | None
    ) = None


class AcceptedMethod(Answer, kw_only=True):
    """A coin on a network."""

    currency: Annotated[str, Meta(description="The coin's code.", examples=["USDT"])]
    network: Annotated[str, Meta(description="The network's code.", examples=["ethereum"])]


class AcceptedMethods(Answer, kw_only=True):
    """The methods that a merchant accepts."""

    accepted: Annotated[
        list[AcceptedMethod], Meta(description="The accepted methods; an empty list means every method.")
    ]


class SetDiscount(Request, kw_only=True, omit_defaults=True):
    """A discount for payments in a coin (POST /v1/payment/discount)."""

    refusals: ClassVar = {
        "currency": errors.PaymentUnknownCurrency,
        "network": errors.PaymentUnsupportedNetwork,
        "discount_percent": errors.DiscountBadPercent,
    }

    currency: Annotated[CodeOrEmpty, Meta(description="The coin.", examples=["USDT"])] | None = None
    network: (
        Annotated[
            CodeOrEmpty, Meta(description="The network. Default: all networks of the coin.", examples=["ethereum"])
        ]
        | None
    ) = None
    discount_percent: (
        Annotated[
            float,
            Meta(
                ge=-DISCOUNT_MAX_PERCENT,
                le=DISCOUNT_MAX_PERCENT,
                description="Percent off the price: -99 to 99, at most 4 fractional digits. 0 ends the discount; a"
                " negative value raises the price.",
                extra_json_schema=dict(_DIGITS),
            ),
        ]
        | None
    ) = None

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse a discount in no coin."""
        if self.discount_percent is not None and self.currency is None:
            raise errors.PaymentUnknownCurrency("currency: is missing")


class Discount(Answer, kw_only=True):
    """The discount of a method."""

    currency: CoinCode
    network: NetworkCode
    discount_percent: Annotated[float, Meta(description="Percent off the price. A negative value raises the price.")]


class Discounts(Answer, kw_only=True):
    """A merchant's discounts. A method that is not listed has no discount."""

    items: Annotated[list[Discount], Meta(description="One item for each method with a discount.")]


class SetAccuracy(Request, kw_only=True, omit_defaults=True):
    """The difference that a merchant tolerates (POST /v1/payment/accuracy)."""

    refusals: ClassVar = {"accuracy_percent": errors.AccuracyBadPercent}

    enabled: (
        Annotated[bool, Meta(description="true: a difference is tolerated. Omit it to keep the setting.")] | None
    ) = None
    accuracy_percent: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=ACCURACY_MAX_PERCENT,
                description="Percent: 1 to 5 while enabled, at most 4 fractional digits. Omit it to keep the setting.",
                extra_json_schema=dict(_DIGITS),
            ),
        ]
        | None
    ) = None


class Accuracy(Answer, kw_only=True):
    """The tolerated difference of payments without accuracy_payment_percent."""

    enabled: Annotated[bool, Meta(description="true if a difference is tolerated.")]
    accuracy_percent: Annotated[float, Meta(description="Percent, in force while enabled; 0 if it was never set.")]

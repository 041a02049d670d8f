"""Declares how a merchant sets its terms of payment: accepted methods, discounts and tolerance."""

from __future__ import annotations

from typing import Final

from actors.queue.call_specs import SET_ACCEPTED, SET_ACCURACY, SET_DISCOUNT
from api.endpoints import PAYMENT_KEYS, Actor, Endpoint
from core.merchants.terms_schemas import AcceptedMethods, Accuracy, Discounts, SetAccepted, SetAccuracy, SetDiscount

_ACCEPTED: Final = [{"currency": "USDT", "network": "bsc"}, {"currency": "USDT", "network": "ethereum"}]
_DISCOUNT: Final = {"currency": "USDT", "network": "bsc", "discount_percent": 2.5}
_ACCURACY: Final = {"enabled": True, "accuracy_percent": 1.5}

ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/accepted",
        name="setAcceptedMethods",
        tag="Payments",
        summary="Read or set the accepted methods",
        description=(
            "Sets the coins and networks that buyers may pay with. Payments that have a coin keep it."
            " Omit accepted to read the list; an empty list accepts every method."
        ),
        rights=PAYMENT_KEYS,
        request=SetAccepted,
        result=AcceptedMethods,
        actor=Actor(spec=SET_ACCEPTED),
        examples={"request": {"accepted": _ACCEPTED}, "result": {"accepted": _ACCEPTED}},
    ),
    Endpoint(
        path="/v1/payment/discount",
        name="setDiscount",
        tag="Payments",
        summary="Read or set discounts",
        description=(
            "Sets a percentage that is taken off the price, or added if it is negative, if the buyer"
            " pays with a coin. A payment takes it with its first quote and keeps it. 0 ends a"
            " discount. The answer has all discounts that are then set. Omit discount_percent to read"
            " them: all, or those of a coin or network."
        ),
        rights=PAYMENT_KEYS,
        request=SetDiscount,
        result=Discounts,
        actor=Actor(spec=SET_DISCOUNT),
        examples={"request": _DISCOUNT, "result": {"items": [_DISCOUNT]}},
    ),
    Endpoint(
        path="/v1/payment/accuracy",
        name="setAccuracy",
        tag="Payments",
        summary="Read or set the tolerance",
        description=(
            "Sets by how much a buyer may pay less or more, including both bounds, for new payments"
            " without accuracy_payment_percent. An empty body reads the setting."
        ),
        rights=PAYMENT_KEYS,
        request=SetAccuracy,
        result=Accuracy,
        actor=Actor(spec=SET_ACCURACY),
        examples={"request": _ACCURACY, "result": _ACCURACY},
    ),
)

"""Declares requests and answers of transfers to the personal wallet. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from core.errors import TransferBadAmount, TransferUnknownCurrency
from core.net.answers import Answer
from core.net.fields import CoinCode
from core.net.requests import Amount, Code, OrderId, Request


class ToPersonal(Request, kw_only=True, omit_defaults=True):
    """What goes from a merchant's balance to its owner's personal wallet (POST /v1/transfer/to-personal)."""

    refusals: ClassVar = {"amount": TransferBadAmount, "currency": TransferUnknownCurrency}

    amount: Amount
    currency: Annotated[Code, Meta(description="The coin.")]
    order_id: (
        Annotated[OrderId, Meta(description="Should always be sent: a repeat moves nothing and gets the first answer.")]
        | None
    ) = None


class Transferred(Answer, kw_only=True):
    """A transfer that was made."""

    currency: CoinCode
    amount: Annotated[str, Meta(description="What was moved, in currency.", examples=["25.5"])]
    direction: Annotated[Literal["to_personal"], Meta(description="From the merchant's balance to its owner's.")]
    personal_balance: Annotated[
        str, Meta(description="Of the personal wallet, which all of the owner's merchants share.", examples=["125.5"])
    ]

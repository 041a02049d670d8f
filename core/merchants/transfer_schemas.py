"""Declares requests and answers of transfers to the personal wallet. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from core.errors import TransferBadAmount, TransferUnknownCurrency
from core.http.answers import Answer
from core.http.requests import Amount, Code, OrderId, Request


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

    currency: Annotated[str, Meta(examples=["USDT"])]
    amount: Annotated[str, Meta(examples=["25.5"])]
    direction: Literal["to_personal"]
    personal_balance: Annotated[
        str, Meta(description="Of the personal wallet, which all of the owner's merchants share.", examples=["125.5"])
    ]

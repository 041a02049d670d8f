"""Declares requests and answers of transfers to the personal wallet. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from core.errors import TransferBadAmount, TransferUnknownCurrency
from core.http.answers import Answer
from core.http.fields import CoinCode
from core.http.requests import Amount, Code, OrderId, Request


class ToPersonal(Request, kw_only=True, omit_defaults=True):
    """A transfer from a merchant's balance to its owner's personal balance (POST /v1/transfer/to-personal)."""

    refusals: ClassVar = {"amount": TransferBadAmount, "currency": TransferUnknownCurrency}

    amount: Amount
    currency: Annotated[Code, Meta(description="The coin.")]
    order_id: (
        Annotated[
            OrderId,
            Meta(
                description="Your own reference. Always send it: a repeat with the same order_id moves nothing and"
                " gets the first answer."
            ),
        ]
        | None
    ) = None


class Transferred(Answer, kw_only=True):
    """A completed transfer."""

    currency: CoinCode
    amount: Annotated[str, Meta(description="The moved amount, in currency.", examples=["25.5"])]
    direction: Annotated[
        Literal["to_personal"],
        Meta(description="to_personal: from the merchant's balance to the owner's personal balance."),
    ]
    personal_balance: Annotated[
        str,
        Meta(
            description="The owner's personal balance after the transfer, in currency. All of the owner's"
            " merchants share it.",
            examples=["125.5"],
        ),
    ]

"""Declares what may be asked of automatic withdrawals, and the answer. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from core import errors
from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode
from core.http.requests import Amount, CodeOrEmpty, Request, Text
from core.payouts.schemas import ADDRESS_CHARS_MAX

_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


class SetAutoWithdraw(Request, kw_only=True, omit_defaults=True):
    """A rule that pays your balance out automatically (POST /v1/auto-withdraw)."""

    refusals: ClassVar = {
        "currency": errors.AutowithdrawUnknownCurrency,
        "network": errors.AutowithdrawUnknownCurrency,
        "address": errors.AutowithdrawBadAddress,
        "threshold": errors.AutowithdrawBadThreshold,
    }

    currency: (
        Annotated[CodeOrEmpty, Meta(description="The coin. Each coin has at most one rule.", examples=["USDT"])] | None
    ) = None
    network: (
        Annotated[
            CodeOrEmpty,
            Meta(
                description="The network of the payouts. May be omitted if the coin has only one network, or already"
                " has a rule. Another network than the rule's replaces the rule.",
                examples=["ethereum"],
            ),
        ]
        | None
    ) = None
    address: (
        Annotated[
            Text,
            Meta(
                max_length=ADDRESS_CHARS_MAX,
                description="Your address for the payouts. Omit it to keep the present one.",
                examples=[_ADDRESS],
            ),
        ]
        | None
    ) = None
    threshold: (
        Annotated[
            Amount,
            Meta(
                description="When the available balance reaches this amount, all of it is paid out. In currency; at"
                " least the smallest payout. Omit it to keep the present one."
            ),
        ]
        | None
    ) = None
    enabled: (
        Annotated[
            bool,
            Meta(description="true: the rule makes payouts. Omit it to keep the setting; default true for a new rule."),
        ]
        | None
    ) = None

    @property
    def is_change(self) -> bool:
        """Return True if the request changes a rule, and does not only read the rules."""
        return any(field is not None for field in (self.network, self.address, self.threshold, self.enabled))


class AutoWithdrawRule(Answer, kw_only=True):
    """A rule that pays a coin out automatically."""

    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="Your address for the payouts.", examples=[_ADDRESS])]
    threshold: Annotated[
        str, Meta(description="The available balance at which it is paid out, in currency.", examples=["500"])
    ]
    enabled: Annotated[
        bool,
        Meta(
            description="true if the rule makes payouts. It becomes false when a key that set or co-signed the"
            " address is revoked."
        ),
    ]
    status: Annotated[
        Literal["active", "awaiting_cosign", "off"],
        Meta(
            description="active: in force; awaiting_cosign: it pays nothing until another key or user sends the"
            " same rule; off: not enabled."
        ),
    ]


class AutoWithdraw(Answer, kw_only=True):
    """The rules of a merchant."""

    items: Annotated[list[AutoWithdrawRule], Meta(description="The rules, one for each coin.")]

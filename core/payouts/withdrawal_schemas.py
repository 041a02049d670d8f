"""Declares what may be asked of automatic withdrawals, and the answer. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from core import errors
from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode
from core.net.requests import Amount, CodeOrEmpty, Request, Text
from core.payouts.schemas import ADDRESS_CHARS_MAX

_ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


class SetAutoWithdraw(Request, kw_only=True, omit_defaults=True):
    """What is to be sent to a merchant by itself (POST /v1/auto-withdraw)."""

    refusals: ClassVar = {
        "currency": errors.AutowithdrawUnknownCurrency,
        "network": errors.AutowithdrawUnknownCurrency,
        "address": errors.AutowithdrawBadAddress,
        "threshold": errors.AutowithdrawBadThreshold,
    }

    currency: Annotated[CodeOrEmpty, Meta(description="The coin; each has one rule.", examples=["USDT"])] | None = None
    network: (
        Annotated[
            CodeOrEmpty,
            Meta(
                description="By which it is sent. May be left out where the coin has one, or has its rule; another"
                " network than the rule's makes a new rule in its place.",
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
                description="Where it is sent. Without it, as it was.",
                examples=[_ADDRESS],
            ),
        ]
        | None
    ) = None
    threshold: (
        Annotated[
            Amount,
            Meta(
                description="The available balance from which on all of it is sent, in currency; at least the smallest"
                " payout. Without it, as it was."
            ),
        ]
        | None
    ) = None
    enabled: (
        Annotated[bool, Meta(description="Whether it is sent. Without it, as it was; true for a new rule.")] | None
    ) = None

    @property
    def is_change(self) -> bool:
        """Return whether more is asked than to be told the rules."""
        return any(field is not None for field in (self.network, self.address, self.threshold, self.enabled))


class AutoWithdrawRule(Answer, kw_only=True):
    """What of a coin is sent by itself."""

    currency: CoinCode
    network: NetworkCode
    address: Annotated[str, Meta(description="Where it is sent.", examples=[_ADDRESS])]
    threshold: Annotated[
        str, Meta(description="The available balance from which on it is sent, in currency.", examples=["500"])
    ]
    enabled: Annotated[
        bool,
        Meta(description="Whether it is sent; false, too, once a key that named or co-signed the address is revoked."),
    ]
    status: Annotated[
        Literal["active", "awaiting_cosign", "off"],
        Meta(description="awaiting_cosign: sends nothing until another principal sends the same rule."),
    ]


class AutoWithdraw(Answer, kw_only=True):
    """The rules of a merchant."""

    items: Annotated[list[AutoWithdrawRule], Meta(description="By coin; one each.")]

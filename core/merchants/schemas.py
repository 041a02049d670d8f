"""Declares requests and answers of allowlists and balances. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from core.errors import AllowlistBadIp
from core.net import allowlist
from core.net.answers import Answer
from core.net.fields import CoinCode
from core.net.requests import Request


class AllowlistChange(Request, kw_only=True, omit_defaults=True):
    """The source addresses to allow (POST /v1/ip-allowlist)."""

    refusals: ClassVar = {"ips": AllowlistBadIp}

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


class IpAllowlist(Answer, kw_only=True):
    """The source addresses from which a merchant's keys may sign; none stands for all."""

    ips: Annotated[list[str], Meta(description="Addresses, and networks in CIDR notation.")]


class BalanceItem(Answer, kw_only=True):
    """What a merchant holds of one coin, over all its networks."""

    currency: CoinCode
    available: Annotated[str, Meta(description="What can be spent.", examples=["98.125"])]
    maturing: Annotated[str, Meta(description="Credited, not yet deep enough in the chain.", examples=["0"])]
    payout_held: Annotated[str, Meta(description="Set aside for payouts and payout links under way.", examples=["0"])]
    hold: Annotated[str, Meta(description="Shares of split rules that wait for their release.", examples=["0"])]
    debt: Annotated[
        str, Meta(description="Owed after a reorg took what was spent already; repaid first.", examples=["0"])
    ]
    total: Annotated[str, Meta(description="available + maturing + payout_held + hold - debt.", examples=["98.125"])]


class PersonalItem(Answer, kw_only=True):
    """What the merchant's owner holds of one coin."""

    currency: CoinCode
    available: Annotated[str, Meta(description="What is there.", examples=["0"])]


class Balance(Answer, kw_only=True):
    """Every coin, always."""

    items: Annotated[list[BalanceItem], Meta(description="The merchant's, in amounts of each coin.")]
    personal: Annotated[
        list[PersonalItem], Meta(description="The owner's, which all of his merchants share; empty without an owner.")
    ]

"""Declares requests and answers of allowlists and balances. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from core.errors import AllowlistBadIp
from core.http import allowlist
from core.http.answers import Answer
from core.http.fields import CoinCode
from core.http.requests import Request


class AllowlistChange(Request, kw_only=True, omit_defaults=True):
    """The source addresses that may use your keys (POST /v1/ip-allowlist)."""

    refusals: ClassVar = {"ips": AllowlistBadIp}

    ips: (
        Annotated[
            list[Annotated[str, Meta(examples=["203.0.113.7", "198.51.100.0/24"])]],
            Meta(
                max_length=allowlist.ENTRIES_MAX,
                description="IP addresses, and networks in CIDR notation. Omit it to read the list; [] allows all"
                " addresses.",
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
    """The source addresses that may use your keys; an empty list allows all."""

    ips: Annotated[list[str], Meta(description="IP addresses, and networks in CIDR notation.")]


class BalanceItem(Answer, kw_only=True):
    """A merchant's balance of one coin, over all its networks."""

    currency: CoinCode
    available: Annotated[str, Meta(description="The amount that can be spent.", examples=["98.125"])]
    maturing: Annotated[
        str,
        Meta(
            description="The amount that is credited, but needs more confirmations before it can be spent.",
            examples=["0"],
        ),
    ]
    payout_held: Annotated[
        str, Meta(description="The amount that is held for unfinished payouts and payout links.", examples=["0"])
    ]
    hold: Annotated[str, Meta(description="Shares of split rules that wait for the end of their hold.", examples=["0"])]
    debt: Annotated[
        str,
        Meta(
            description="The amount that you owe because a reorg removed a deposit that was already spent. New"
            " credits repay it first.",
            examples=["0"],
        ),
    ]
    total: Annotated[str, Meta(description="available + maturing + payout_held + hold - debt.", examples=["98.125"])]


class PersonalItem(Answer, kw_only=True):
    """The owner's personal balance of one coin."""

    currency: CoinCode
    available: Annotated[str, Meta(description="The amount that can be spent.", examples=["0"])]


class Balance(Answer, kw_only=True):
    """The balances of all coins."""

    items: Annotated[list[BalanceItem], Meta(description="The merchant's balances, in amounts of each coin.")]
    personal: Annotated[
        list[PersonalItem],
        Meta(
            description="The owner's personal balances, which all of the owner's merchants share; empty without"
            " an owner."
        ),
    ]

"""Declares the catalogue as it is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.net.answers import Answer
from core.net.fields import CoinCode, NetworkCode


class CurrencyNetwork(Answer, kw_only=True):
    """A network that carries a coin."""

    network: NetworkCode
    contract: Annotated[str | None, Meta(description="null for the network's own coin.")]
    decimals: Annotated[int, Meta(description="Decimal places of the token's smallest unit there.")]
    precision: Annotated[int, Meta(description="Decimal places that an amount may have there.")]
    min_minor: Annotated[str, Meta(description="The smallest deposit, in minor units of this network's token.")]
    confirmations: Annotated[int, Meta(description="Confirmations from which a deposit is credited.")]
    maturity: Annotated[int, Meta(description="Confirmations from which it can be spent.")]
    is_available: Annotated[bool, Meta(description="Whether it can be paid in now.")]


class Currency(Answer, kw_only=True):
    """A coin to be paid in."""

    currency: CoinCode
    name: Annotated[str, Meta(description="Its name in words.")]
    networks: Annotated[list[CurrencyNetwork], Meta(description="Those that carry it.")]


class PricingCurrency(Answer, kw_only=True):
    """A currency to set prices in."""

    currency: Annotated[str, Meta(description="The currency's code.")]
    kind: Annotated[Literal["fiat", "crypto"], Meta(description="fiat: money of a state; crypto: a coin.")]
    precision: Annotated[int, Meta(description="Decimal places that a price may have.")]


class Currencies(Answer, kw_only=True):
    """The catalogue."""

    currencies: Annotated[list[Currency], Meta(description="The coins to be paid in.")]
    pricing_currencies: Annotated[list[PricingCurrency], Meta(description="The currencies to set prices in.")]

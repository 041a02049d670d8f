"""Declares the API's answer that shows the catalogue."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.http.answers import Answer
from core.http.fields import CoinCode, NetworkCode


class CurrencyNetwork(Answer, kw_only=True):
    """A network that carries a coin."""

    network: NetworkCode
    contract: Annotated[str | None, Meta(description="The token's contract; null for the network's own coin.")]
    decimals: Annotated[int, Meta(description="The decimal places of the coin on this network.")]
    precision: Annotated[int, Meta(description="The decimal places that an amount may have on this network.")]
    min_minor: Annotated[
        str, Meta(description="The smallest deposit that counts, in the coin's smallest units on this network.")
    ]
    confirmations: Annotated[int, Meta(description="Confirmations that a deposit needs to be credited.")]
    maturity: Annotated[int, Meta(description="Confirmations from which the credit can be spent.")]
    is_available: Annotated[bool, Meta(description="true if payments in it are possible now.")]


class Currency(Answer, kw_only=True):
    """A coin to be paid in."""

    currency: CoinCode
    name: Annotated[str, Meta(description="The coin's name.")]
    networks: Annotated[list[CurrencyNetwork], Meta(description="The networks that carry the coin.")]


class PricingCurrency(Answer, kw_only=True):
    """A currency to set prices in."""

    currency: Annotated[str, Meta(description="The currency's code.")]
    kind: Annotated[Literal["fiat", "crypto"], Meta(description="fiat: a fiat currency; crypto: a coin.")]
    precision: Annotated[int, Meta(description="The decimal places that a price may have.")]


class Currencies(Answer, kw_only=True):
    """The catalogue."""

    currencies: Annotated[list[Currency], Meta(description="The coins to be paid in.")]
    pricing_currencies: Annotated[list[PricingCurrency], Meta(description="The currencies to set prices in.")]

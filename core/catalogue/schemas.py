"""Declares the catalogue as it is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.http.answers import Answer


class CurrencyNetwork(Answer, kw_only=True):
    """A network that carries a coin."""

    network: str
    contract: Annotated[str | None, Meta(description="null for the network's own coin.")]
    decimals: int
    precision: int
    min_minor: Annotated[str, Meta(description="The smallest deposit, in minor units of this network's token.")]
    confirmations: int
    maturity: int
    is_available: bool


class Currency(Answer, kw_only=True):
    """A coin to be paid in."""

    currency: str
    name: str
    networks: list[CurrencyNetwork]


class PricingCurrency(Answer, kw_only=True):
    """A currency to set prices in."""

    currency: str
    kind: Literal["fiat", "crypto"]
    precision: int


class Currencies(Answer, kw_only=True):
    """The catalogue."""

    currencies: list[Currency]
    pricing_currencies: list[PricingCurrency]

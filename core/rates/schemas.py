"""Declares requests and answers of exchange rates. Read as core.net.requests is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.net.answers import Answer
from core.net.requests import Request, Text


class RateQuery(Request, kw_only=True, omit_defaults=True):
    """Which rates are asked for (POST /v1/exchange-rate/list)."""

    currency_from: Annotated[Text, Meta(description="One currency; all without it.", examples=["ETH"])] | None = None


class ExchangeRate(Answer, kw_only=True, rename={"from_": "from"}):
    """What one unit of a currency is worth."""

    from_: Annotated[str, Meta(description="The currency: a coin or a fiat currency.", examples=["ETH"])]
    to: Annotated[Literal["USDT"], Meta(description="The currency in which the course is told.")]
    course: Annotated[str, Meta(description="USDT for one unit.", examples=["3001.25"])]
    updated_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]

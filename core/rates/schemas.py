"""Declares requests and answers of exchange rates. Read as core.http.requests is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.http.answers import Answer
from core.http.requests import Request, Text


class RateQuery(Request, kw_only=True, omit_defaults=True):
    """The rates to read (POST /v1/exchange-rate/list)."""

    currency_from: Annotated[Text, Meta(description="The currency. Default: all.", examples=["ETH"])] | None = None


class ExchangeRate(Answer, kw_only=True, rename={"from_": "from"}):
    """The rate of a currency."""

    from_: Annotated[str, Meta(description="The currency: a coin or a fiat currency.", examples=["ETH"])]
    to: Annotated[Literal["USDT"], Meta(description="The currency of course.")]
    course: Annotated[str, Meta(description="The amount of USDT for one unit of the currency.", examples=["3001.25"])]
    updated_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]

"""Declares the endpoint that returns the rates of currencies."""

from __future__ import annotations

from typing import Final, cast

from api.endpoints import ANY_KEY, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core.rates.schemas import ExchangeRate, RateQuery
from core.rates.view import exchange_rates
from models.rates.rates import quotes_against_usdt


def read_rates(_gateway: Gateway, call: Call) -> Reply:
    """Return the rate of each currency in USDT, or of one; a currency without a fresh rate is absent."""
    query = cast("RateQuery", call.body)
    return answered(exchange_rates(quotes_against_usdt(query.currency_from)))


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/exchange-rate/list",
        name="listExchangeRates",
        tag="Catalogue",
        summary="Read exchange rates",
        description="The rates are in USDT. A currency that is unknown, or has no fresh rate, is absent.",
        rights=ANY_KEY,
        request=RateQuery,
        result=list[ExchangeRate],
        reader=read_rates,
        examples={
            "request": {"currency_from": "ETH"},
            "result": [
                {"from": "ETH", "to": "USDT", "course": "3001.25", "updated_at": "2025-11-24T15:00:00.000Z"},
            ],
        },
    ),
)

"""Declares the endpoint that returns a merchant's balances."""

from __future__ import annotations

from typing import Final

from api.endpoints import ANY_KEY, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from core.http.requests import Empty
from core.merchants.schemas import Balance
from models.ledger import balances


def read_balance(gateway: Gateway, call: Call) -> Reply:
    """Return the merchant's balances and its owner's personal ones."""
    holdings, personal = balances.read(call.merchant().merchant_id)
    return answered(balances.balance(gateway.catalogue, holdings, personal))


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/balance",
        name="getBalance",
        tag="Balance",
        summary="Read the balance",
        description="Returns every coin, each over all its networks. total = available + maturing +"
        " payout_held + hold - debt.",
        rights=ANY_KEY,
        request=Empty,
        result=Balance,
        reader=read_balance,
        examples={
            "request": {},
            "result": {
                "items": [
                    {
                        "currency": "USDT",
                        "available": "98.125",
                        "maturing": "20",
                        "payout_held": "0",
                        "hold": "0",
                        "debt": "0",
                        "total": "118.125",
                    }
                ],
                "personal": [{"currency": "USDT", "available": "0"}],
            },
        },
    ),
)

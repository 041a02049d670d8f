"""Declares the endpoint that shows the catalogue of coins, networks and pricing currencies."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from api.endpoints import PUBLIC, Call, Endpoint, Reply, envelope
from api.gateway import Gateway
from core.catalogue.catalogue import Asset, Catalogue, Pair
from core.catalogue.schemas import Currencies
from core.rates.pricing import Method

# As long as the gateway itself uses one reading of the usable methods.
CACHE_S: Final = 1


def read_currencies(gateway: Gateway, _call: Call) -> Reply:
    """Return every coin and currency, and the coins that can be paid with now."""
    view = render(gateway.catalogue, gateway.availability.read().payments)
    return Reply(body=envelope(msgspec.json.encode(view)), headers={"Cache-Control": f"public, max-age={CACHE_S}"})


def render(catalogue: Catalogue, usable: frozenset[Method]) -> dict[str, Any]:
    """Return the catalogue as GET /v1/currencies shows it."""
    return {
        "currencies": [
            {
                "currency": asset.code,
                "name": asset.name,
                "networks": [
                    _network(catalogue, asset, pair, is_available=method in usable)
                    for method, pair in catalogue.pairs.items()
                    if pair.currency == asset.code
                ],
            }
            for asset in catalogue.assets.values()
        ],
        "pricing_currencies": [
            {"currency": code, "kind": kind, "precision": catalogue.digits(code)}
            for kind, codes in (("fiat", catalogue.fiats), ("crypto", catalogue.assets))
            for code in codes
        ],
    }


def _network(catalogue: Catalogue, asset: Asset, pair: Pair, *, is_available: bool) -> dict[str, Any]:
    network = catalogue.networks[pair.network]
    return {
        "network": pair.network,
        "contract": pair.contract,
        "decimals": pair.decimals,
        "precision": min(asset.precision, pair.decimals),
        "min_minor": str(pair.min_deposit_units),
        "confirmations": network.confirmations,
        "maturity": network.maturity,
        "is_available": is_available,
    }


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/currencies",
        name="listCurrencies",
        tag="Catalogue",
        summary="List coins, networks and pricing currencies",
        description="Lists the coins with their networks, and the currencies that a price can have.",
        rights=PUBLIC,
        cors=True,
        limit="public",
        result=Currencies,
        reader=read_currencies,
        cached=True,
        examples={
            "result": {
                "currencies": [
                    {
                        "currency": "DAI",
                        "name": "Dai",
                        "networks": [
                            {
                                "network": "ethereum",
                                "contract": "0x6B175474E89094C44Da98b954EedeAC495271d0F",
                                "decimals": 18,
                                "precision": 18,
                                "min_minor": "1000000000000000000",
                                "confirmations": 12,
                                "maturity": 64,
                                "is_available": True,
                            }
                        ],
                    }
                ],
                "pricing_currencies": [{"currency": "USD", "kind": "fiat", "precision": 2}],
            }
        },
    ),
)

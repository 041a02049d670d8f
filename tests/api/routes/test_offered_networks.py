"""Before a network's scan has begun no address on it is given out: a payment there would never be seen."""

from __future__ import annotations

from typing import Any

import pytest

from api import availability
from models.db import base
from models.deposits import offered
from tests.api.conftest import code_of
from tests.api.live import Live
from tests.models.builders import begin_scan

USDT = {"amount": "10", "currency": "USD", "to_currency": "USDT"}


@pytest.fixture(autouse=True)
def _bsc_has_not_begun(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (offered, availability):
        monkeypatch.setattr(module, "CACHE_S", 0.0)
    base.execute("DELETE FROM chain_cursors WHERE network = 'bsc'")
    live.configure(ADDRESS_PUBLIC_KEY=live.settings.address_public_key)


def services(live: Live) -> dict[str, bool]:
    items = live.post("/v1/payment/services", {}).json["result"]["items"]
    return {item["network"]: item["is_available"] for item in items if item["currency"] == "USDT"}


def currencies(live: Live) -> dict[str, bool]:
    listed = live.client.simulate_get("/v1/currencies").json["result"]["currencies"]
    [usdt] = [item for item in listed if item["currency"] == "USDT"]
    return {network["network"]: network["is_available"] for network in usdt["networks"]}


def begin() -> None:
    begin_scan("bsc")


def test_it_is_not_available_until_then(live: Live) -> None:
    for listing in (services, currencies):
        assert (listing(live)["ethereum"], listing(live)["bsc"]) == (True, False)
    begin()
    for listing in (services, currencies):
        assert (listing(live)["ethereum"], listing(live)["bsc"]) == (True, True)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/payment", USDT | {"network": "bsc"}, "payment.unsupported_network"),
        ("/v1/wallet", {"currency": "USDT", "network": "bsc"}, "wallet.unsupported_network"),
    ],
)
def test_nothing_is_created_on_it_until_then(live: Live, path: str, body: dict[str, Any], code: str) -> None:
    refused = live.post(path, body)
    assert (refused.status_code, code_of(refused)) == (400, code)
    begin()

    assert live.post(path, body).status_code == 200


def test_no_buyer_chooses_it_until_then(live: Live) -> None:
    mine = live.agnostic()
    shown = live.client.simulate_get(f"/v1/pay/{mine}").json["result"]["accepted"]
    assert {method["network"] for method in shown} == {"ethereum"}
    assert code_of(live.choose(mine, network="bsc")) == "pay.method_not_accepted"
    begin()

    assert live.choose(mine, network="bsc").status_code == 200

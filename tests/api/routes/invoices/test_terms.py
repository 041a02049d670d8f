"""Accepted methods, discounts and tolerance over HTTP, with the real actors behind the API: every code and effect."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from actors import context
from api.app import create_app
from core.catalogue.catalogue import load_catalogue
from core.invoices.schemas import PaymentServices
from core.merchants.terms_schemas import AcceptedMethods, Accuracy, Discounts
from models.db import base
from models.db.base import execute
from models.merchants import term_changes
from tests.api.conftest import NOW, Client, FakeCaller, FakeQueues, Keys, code_of, make_settings
from tests.api.live import Live, LocalCaller
from tests.api.rows import UNIT, add_merchant
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import begin_scans

ACCEPTED, DISCOUNT, ACCURACY = (f"/v1/payment/{name}" for name in ("accepted", "discount", "accuracy"))
ETHEREUM: dict[str, Any] = {"currency": "USDT", "network": "ethereum"}
BSC: dict[str, Any] = {"currency": "USDT", "network": "bsc"}
PRICE: dict[str, Any] = {"amount": "100", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}
AGNOSTIC: dict[str, Any] = {"amount": "100", "currency": "USD"}


@pytest.fixture
def shop(keys: Keys, database: str, queues: FakeQueues) -> Client:
    """A merchant with a key of each kind, and another merchant, at a gateway with ethereum and bsc."""
    merchant_id = add_merchant()
    keys.add("pk_unified", "unified", merchant_id)
    keys.add("pk_payment", "payment", merchant_id)
    keys.add("pk_other", "unified", add_merchant("Other"))
    context.configure(make_settings(DATABASE_URL=database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY))
    begin_scans()
    add_chunk(0)
    for currency in ("USD", "USDT", "BNB"):
        execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())", (currency,))
    settings = make_settings()
    return Client(create_app(settings, caller=LocalCaller(), queues=queues, find_key=keys.find, now=lambda: NOW))


def result(client: Client, path: str, body: dict[str, Any], **options: Any) -> Any:
    answer = client.post(path, body, **options)
    assert answer.status_code == 200, answer.text
    assert answer.json["state"] == 0
    return answer.json["result"]


def services(client: Client, **options: Any) -> dict[tuple[str, str], Any]:
    answer = msgspec.convert(result(client, "/v1/payment/services", {}, **options), PaymentServices)
    return {(item.currency, item.network): item for item in answer.items}


# Setting, reading and refusing --------------------------------------------------------------------------------


def test_accepted_methods_are_set_read_and_given_up(shop: Client) -> None:
    assert result(shop, ACCEPTED, {}) == {"accepted": []}
    answer = result(shop, ACCEPTED, {"accepted": [ETHEREUM, {"currency": "BNB"}, BSC]})
    msgspec.convert(answer, AcceptedMethods)
    assert answer == {"accepted": [{"currency": "BNB", "network": "bsc"}, BSC, ETHEREUM]}
    assert result(shop, ACCEPTED, {}) == answer
    assert result(shop, ACCEPTED, {"accepted": []}) == result(shop, ACCEPTED, {}) == {"accepted": []}


def test_discounts_are_set_read_and_taken_away(shop: Client) -> None:
    assert result(shop, DISCOUNT, {}) == {"items": []}
    answer = result(shop, DISCOUNT, ETHEREUM | {"discount_percent": 2.5})
    msgspec.convert(answer, Discounts)
    assert answer == {"items": [ETHEREUM | {"discount_percent": 2.5}]}
    everywhere = result(shop, DISCOUNT, {"currency": "USDT", "discount_percent": -99})["items"]
    assert {item["network"] for item in everywhere} == set(load_catalogue("production").networks_of("USDT"))
    assert result(shop, DISCOUNT, BSC) == {"items": [BSC | {"discount_percent": -99}]}
    assert result(shop, DISCOUNT, {"currency": "USDT", "discount_percent": 0}) == {"items": []}


def test_the_tolerance_is_set_read_and_switched_off(shop: Client) -> None:
    assert result(shop, ACCURACY, {}) == {"enabled": False, "accuracy_percent": 0}
    answer = result(shop, ACCURACY, {"enabled": True, "accuracy_percent": 1.5})
    msgspec.convert(answer, Accuracy)
    assert answer == result(shop, ACCURACY, {}) == {"enabled": True, "accuracy_percent": 1.5}
    assert result(shop, ACCURACY, {"enabled": False}) == {"enabled": False, "accuracy_percent": 1.5}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        (ACCEPTED, {"accepted": [{"currency": "XYZ"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [{"currency": "USD", "network": "ethereum"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [{"currency": "USDT"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [ETHEREUM, {"currency": "ETH", "network": "base"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [{"currency": "LTC", "network": "litecoin"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [{"network": "ethereum"}]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": ["USDT"]}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": ETHEREUM}, "accepted.unknown_method"),
        (ACCEPTED, {"accepted": [ETHEREUM] * 201}, "accepted.unknown_method"),
        (DISCOUNT, ETHEREUM | {"discount_percent": 99.0001}, "discount.bad_percent"),
        (DISCOUNT, ETHEREUM | {"discount_percent": -100}, "discount.bad_percent"),
        (DISCOUNT, ETHEREUM | {"discount_percent": 0.00001}, "discount.bad_percent"),
        (DISCOUNT, ETHEREUM | {"discount_percent": "5"}, "discount.bad_percent"),
        (DISCOUNT, ETHEREUM | {"discount_percent": True}, "discount.bad_percent"),
        (DISCOUNT, ETHEREUM | {"discount_percent": 10**400}, "discount.bad_percent"),
        (DISCOUNT, {"discount_percent": 5}, "payment.unknown_currency"),
        (DISCOUNT, {"currency": "USD", "discount_percent": 5}, "payment.unknown_currency"),
        (DISCOUNT, {"currency": "usdt"}, "payment.unknown_currency"),
        (DISCOUNT, {"currency": 5, "discount_percent": 5}, "payment.unknown_currency"),
        (DISCOUNT, {"currency": "DAI", "network": "tron", "discount_percent": 5}, "payment.unsupported_network"),
        (DISCOUNT, {"network": "litecoin"}, "payment.unsupported_network"),
        (DISCOUNT, {"currency": "DAI", "network": 5}, "payment.unsupported_network"),
        (ACCURACY, {"enabled": True}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": True, "accuracy_percent": 0}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": True, "accuracy_percent": 0.9999}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": True, "accuracy_percent": 1.00001}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": True, "accuracy_percent": 5.0001}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": False, "accuracy_percent": 6}, "accuracy.bad_percent"),
        (ACCURACY, {"accuracy_percent": "2"}, "accuracy.bad_percent"),
        (ACCURACY, {"enabled": "yes"}, "request.bad_field"),
    ],
)
def test_every_refusal_changes_nothing(shop: Client, path: str, body: dict[str, Any], code: str) -> None:
    before = [result(shop, read, {}) for read in (ACCEPTED, DISCOUNT, ACCURACY)]

    answer = shop.post(path, body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert [result(shop, read, {}) for read in (ACCEPTED, DISCOUNT, ACCURACY)] == before


@pytest.mark.parametrize("path", [ACCEPTED, DISCOUNT, ACCURACY])
@pytest.mark.parametrize(("kind", "status"), [("unified", 200), ("payment", 200), ("payout", 403)])
def test_terms_are_for_keys_that_take_payments(client: Client, path: str, kind: str, status: int) -> None:
    answer = client.post(path, {}, public_id=f"pk_{kind}")

    assert answer.status_code == status
    assert status == 200 or code_of(answer) == "merchant.wrong_key_kind"


@pytest.mark.parametrize("path", [ACCEPTED, DISCOUNT, ACCURACY])
def test_terms_need_a_signature(client: Client, caller: FakeCaller, path: str) -> None:
    assert client.public_post(path, {}).status_code == 401
    assert caller.calls == []


def test_terms_are_their_merchants_alone(shop: Client, keys: Keys) -> None:
    mine = {"merchant_id": str(keys.rows["pk_unified"].merchant_id)}
    other = {"public_id": "pk_other"}
    result(shop, ACCEPTED, mine | {"accepted": [BSC]}, **other)
    result(shop, DISCOUNT, mine | ETHEREUM | {"discount_percent": 50}, **other)
    result(shop, ACCURACY, mine | {"enabled": True, "accuracy_percent": 5}, **other)

    assert result(shop, ACCEPTED, {}) == {"accepted": []}
    assert result(shop, DISCOUNT, {}) == {"items": []}
    assert result(shop, ACCURACY, {})["enabled"] is False
    assert services(shop)["USDT", "ethereum"].discount_percent == 0
    assert services(shop, **other)["USDT", "ethereum"].discount_percent == 50
    assert result(shop, ACCEPTED, {}, public_id="pk_payment") == {"accepted": []}


# Effects ------------------------------------------------------------------------------------------------------


def test_a_payment_in_a_method_that_is_not_accepted_is_refused(shop: Client) -> None:
    result(shop, ACCEPTED, {"accepted": [BSC]})

    refused = shop.post("/v1/payment", PRICE)

    assert (refused.status_code, code_of(refused)) == (400, "payment.unsupported_network")
    assert result(shop, "/v1/payment", PRICE | {"network": "bsc"})["payer_amount"] == "100"
    result(shop, ACCEPTED, {"accepted": []})
    assert result(shop, "/v1/payment", PRICE)["network"] == "ethereum"


def test_a_buyer_may_choose_among_the_methods_accepted_now(shop: Client) -> None:
    made = result(shop, "/v1/payment", AGNOSTIC)
    path = f"/v1/pay/{made['uuid']}"
    # tron is of the catalogue, but this gateway does not serve it.
    result(shop, ACCEPTED, {"accepted": [BSC, {"currency": "BNB"}, {"currency": "USDT", "network": "tron"}]})

    shown = shop.simulate_get(path).json["result"]["accepted"]
    refusals = [shop.public_post(f"{path}/select", choice) for choice in (ETHEREUM, ETHEREUM | {"network": "tron"})]

    assert sorted(shown, key=str) == [{"currency": "BNB", "network": "bsc"}, BSC]
    assert [(answer.status_code, code_of(answer)) for answer in refusals] == [(400, "pay.method_not_accepted")] * 2
    chosen = shop.public_post(f"{path}/select", BSC)
    assert chosen.json["result"]["network"] == "bsc"


def test_a_payment_without_a_usable_method_is_refused(shop: Client) -> None:
    result(shop, ACCEPTED, {"accepted": [{"currency": "BTC"}]})

    assert code_of(shop.post("/v1/payment", AGNOSTIC)) == "invoice.no_pay_asset"


def test_services_show_accepted_methods_and_discounts(shop: Client) -> None:
    result(shop, ACCEPTED, {"accepted": [BSC, {"currency": "USDT", "network": "tron"}]})
    result(shop, DISCOUNT, ETHEREUM | {"discount_percent": 12.5})
    result(shop, DISCOUNT, BSC | {"discount_percent": -3})

    shown = services(shop)

    assert [method for method, item in shown.items() if item.is_available] == [("USDT", "bsc")]
    assert {method: item.discount_percent for method, item in shown.items() if item.discount_percent} == {
        ("USDT", "ethereum"): 12.5,
        ("USDT", "bsc"): -3,
    }


def test_a_payment_and_a_wallet_freeze_the_fee_of_their_creation(live: Live) -> None:
    def fees(body: dict[str, Any]) -> Any:
        made = live.post("/v1/payment", body).json["result"]["uuid"]
        return base.one("SELECT fee_ppm, fee_fixed_usd_cents, fee_fixed_units FROM invoices WHERE id = %s", (made,))

    assert fees(PRICE) == (15_000, 30, 3 * UNIT // 10)
    live.configure(FEE_PERCENT="2", FEE_FIXED_USD="0.50", ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    assert fees(PRICE) == (20_000, 50, UNIT // 2)
    term_changes.set_fee_percent(live.shop, 0)
    assert fees(PRICE) == (0, 50, UNIT // 2)
    live.post("/v1/wallet", ETHEREUM)
    assert base.column("SELECT fee_ppm FROM wallets") == [0]
    assert base.column("SELECT DISTINCT fee_ppm FROM invoices ORDER BY fee_ppm") == [0, 15_000, 20_000]


def test_no_price_is_above_the_gateways_largest(live: Live) -> None:
    live.configure(PRICE_MAX_USD="50", ADDRESS_PUBLIC_KEY=PUBLIC_KEY)

    for body in (PRICE, AGNOSTIC):
        assert live.post("/v1/payment", body | {"amount": "50"}).status_code == 200
        assert code_of(live.post("/v1/payment", body | {"amount": "50.01"})) == "payment.bad_amount"


def test_services_show_the_gateways_fee_and_largest_price(keys: Keys, database: str) -> None:
    del database
    keys.add("pk_unified", "unified", add_merchant())
    base.execute("INSERT INTO rates (currency, usd, source, quoted_at) VALUES ('USDT', 1, 'test', app_now())")
    settings = make_settings(FEE_PERCENT="2.25", FEE_FIXED_USD="1", PRICE_MAX_USD="500")
    app = create_app(settings, caller=FakeCaller(), queues=FakeQueues(), find_key=keys.find, now=lambda: NOW)

    item = services(Client(app))["USDT", "ethereum"]

    assert (item.commission.percent, item.commission.fixed_usd) == ("2.25", "1.00")
    assert item.limit.max_amount == "500"


def test_a_payment_has_the_discount_of_its_first_quote(shop: Client) -> None:
    result(shop, DISCOUNT, ETHEREUM | {"discount_percent": 2.5})
    made = result(shop, "/v1/payment", PRICE)
    agnostic = result(shop, "/v1/payment", AGNOSTIC)
    result(shop, DISCOUNT, ETHEREUM | {"discount_percent": -10})

    assert made["payer_amount"] == "97.5"
    assert result(shop, "/v1/payment/info", {"uuid": made["uuid"]})["payer_amount"] == "97.5"
    chosen = shop.public_post(f"/v1/pay/{agnostic['uuid']}/select", ETHEREUM)
    assert chosen.json["result"]["payer_amount"] == "110"


def test_a_discount_below_the_minimum_is_refused_by_its_code(shop: Client) -> None:
    result(shop, DISCOUNT, ETHEREUM | {"discount_percent": 99})
    agnostic = result(shop, "/v1/payment", AGNOSTIC | {"amount": "10"})

    assert code_of(shop.post("/v1/payment", PRICE | {"amount": "10"})) == "payment.below_minimum"
    assert code_of(shop.public_post(f"/v1/pay/{agnostic['uuid']}/select", ETHEREUM)) == "pay.below_minimum"
    assert uuid.UUID(result(shop, "/v1/payment", PRICE)["uuid"])

"""The API's side of POST /v1/payment: the message to the actor, and its answers and refusals over HTTP."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from api.endpoints import Endpoint
from api.routes import ENDPOINTS
from tests.api.conftest import Client, FakeCaller, Keys, code_of, path_of

GOOD = {"amount": "10", "currency": "USD"}
INVOICE = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
BODIES = {
    "createPayment": GOOD,
    "resendPayment": {"order_id": "order-1042"},
    "resolvePayment": {"order_id": "order-1042", "action": "accept"},
    "selectMethod": {"currency": "USDT", "network": "ethereum"},
    "createWallet": {"currency": "USDT", "network": "ethereum"},
    "blockWallet": {"address": "0x52908400098527886E0F7030069857D2E4169EE7"},
    "registerWebhook": {"url": "https://shop.example/hooks"},
}
BY_ACTORS = [endpoint for endpoint in ENDPOINTS if endpoint.actor]


@pytest.mark.parametrize("endpoint", BY_ACTORS, ids=lambda endpoint: endpoint.name)
def test_a_refusal_of_an_actor_goes_out_with_its_code_status_and_message(
    client: Client, caller: FakeCaller, endpoint: Endpoint
) -> None:
    for error in endpoint.all_errors():
        caller.error = error("in the actor's own words")
        body = endpoint.examples["request"]

        answer = (
            client.post(path_of(endpoint), body) if endpoint.rights else client.public_post(path_of(endpoint), body)
        )

        assert (answer.status_code, answer.json) == (
            error.status,
            {"error": {"code": error.code, "message": "in the actor's own words"}},
        )


def test_everything_a_merchant_sends_reaches_the_actor(client: Client, caller: FakeCaller) -> None:
    body = GOOD | {
        "order_id": "order-1",
        "network": "ethereum",
        "to_currency": "USDT",
        "lifetime": 600,
        "subtract": 50,
        "accuracy_payment_percent": 0.5,
        "url_callback": "https://shop.example/callback",
        "url_return": "https://shop.example/return",
        "url_success": "https://shop.example/success",
        "additional_data": "№ 7",
        "payer_email": "a@b.example",
        "theme": "dark",
        "is_payment_multiple": True,
        "is_refresh": True,
    }

    client.post("/v1/payment", body | {"fee_ppm": 0, "status": "paid", "merchant_id": INVOICE})

    assert (caller.last.actor, caller.last.queue) == ("create_invoice", "invoices")
    assert caller.last.payload == body


def test_each_request_is_a_call_of_its_own(client: Client, caller: FakeCaller) -> None:
    client.post("/v1/payment", GOOD)
    client.post("/v1/payment", GOOD)

    first, second = (called.info for called in caller.calls)
    assert first.call_id != second.call_id
    assert first.fingerprint == second.fingerprint
    assert (first.idem_key, second.idem_key) == (None, None)


def test_the_fingerprint_is_of_method_path_and_exact_body(client: Client, caller: FakeCaller) -> None:
    raw = json.dumps(GOOD).encode()
    client.signed("/v1/payment", raw)
    client.signed("/v1/payment", raw + b" ")

    first, second = (called.info.fingerprint for called in caller.calls)
    assert first == hashlib.sha256(b"POST\n/v1/payment\n" + raw).digest()
    assert first != second


@pytest.mark.parametrize("key", ["k", "x" * 255, "ключ".encode().decode("latin-1"), "a,b"])
def test_an_idempotency_key_goes_with_the_call(client: Client, caller: FakeCaller, key: str) -> None:
    answer = client.post("/v1/payment", GOOD, headers={"Idempotency-Key": key})

    assert answer.status_code == 200
    assert caller.last.info.idem_key == key
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("key", ["", "x" * 256, "x" * 5000])
def test_an_idempotency_key_has_1_to_255_characters(client: Client, caller: FakeCaller, key: str) -> None:
    answer = client.post("/v1/payment", GOOD, headers={"Idempotency-Key": key})

    assert (answer.status_code, code_of(answer)) == (400, "idempotency.bad_key")
    assert caller.calls == []


def test_a_bad_idempotency_key_is_refused_after_the_signature(client: Client) -> None:
    answer = client.post("/v1/payment", GOOD, headers={"Idempotency-Key": "", "X-Signature": "0" * 64})

    assert code_of(answer) == "merchant.bad_signature"


def test_a_replay_is_marked(client: Client, caller: FakeCaller) -> None:
    caller.result, caller.replayed = {"uuid": "first"}, True

    answer = client.post("/v1/payment", GOOD, headers={"Idempotency-Key": "k"})

    assert answer.json["result"] == {"uuid": "first"}
    assert answer.headers["idempotent-replayed"] == "true"


PRESENT = {"amount": "10.00", "currency": "USD", "payer_currency": "USDT", "network": "ethereum"}
ASKED = {"amount": "10", "currency": "USD", "order_id": "order-1"}


@pytest.mark.parametrize(
    ("asked", "present", "named"),
    [
        ({}, {}, None),
        ({"amount": "010.0"}, {}, None),
        ({"amount": "100"}, {"amount": "100"}, None),
        ({"amount": "0.5"}, {"amount": "0.50"}, None),
        ({"to_currency": "USDT", "network": "ethereum"}, {}, None),
        ({"to_currency": "", "network": ""}, {}, None),
        ({"amount": "12.00"}, {}, "amount"),
        ({"amount": "100"}, {"amount": "1"}, "amount"),
        ({"amount": "10.01"}, {}, "amount"),
        ({"currency": "EUR"}, {}, "currency"),
        ({"to_currency": "USDC"}, {}, "to_currency"),
        ({"to_currency": "USDT", "network": "bsc"}, {}, "network"),
        ({"to_currency": "USDT"}, {"payer_currency": "", "network": ""}, "to_currency"),
        ({"amount": "1", "currency": "EUR", "to_currency": "ETH", "network": "bsc"}, {},
         "amount, currency, to_currency, network"),
        ({"order_id": None, "amount": "12.00"}, {}, None),
    ],
)  # fmt: skip
def test_an_orders_earlier_payment_names_the_fields_that_differ(
    client: Client, caller: FakeCaller, asked: dict[str, Any], present: dict[str, Any], named: str | None
) -> None:
    caller.result = PRESENT | present
    answer = client.post("/v1/payment", ASKED | asked)
    assert (answer.status_code, answer.headers.get("x-differing-fields")) == (200, named)
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/webhooks", {"url": "https://shop.example/hooks"}),
        (f"/v1/pay/{INVOICE}/select", {"currency": "USDT", "network": "ethereum"}),
    ],
)
def test_where_nothing_is_created_an_idempotency_key_has_no_effect(
    client: Client, caller: FakeCaller, path: str, body: Any
) -> None:
    answer = client.post(path, body, headers={"Idempotency-Key": "x" * 256})

    assert answer.status_code in {200, 201}
    assert caller.last.info.idem_key is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"currency": "USD"}, "payment.bad_amount"),
        (GOOD | {"amount": 10}, "payment.bad_amount"),
        (GOOD | {"currency": None}, "payment.unknown_currency"),
        (GOOD | {"to_currency": 1}, "payment.unknown_to_currency"),
        (GOOD | {"network": 1}, "payment.unsupported_network"),
        (GOOD | {"subtract": 101}, "payment.bad_subtract"),
        (GOOD | {"accuracy_payment_percent": 5.1}, "payment.bad_accuracy"),
        (GOOD | {"url_callback": "http://10.0.0.1/"}, "payment.bad_url_callback"),
        (GOOD | {"url_callback": "https://api.sluice.example/"}, "payment.bad_url_callback"),
        (GOOD | {"order_id": 5}, "request.bad_field"),
    ],
)
def test_a_bad_field_never_reaches_the_queue(client: Client, caller: FakeCaller, body: Any, code: str) -> None:
    answer = client.post("/v1/payment", body)

    assert (answer.status_code, code_of(answer)) == (400, code)
    assert caller.calls == []


def test_a_merchant_speaks_for_itself_alone(client: Client, caller: FakeCaller, keys: Keys) -> None:
    other = keys.add("pk_other")

    client.post("/v1/payment", GOOD | {"merchant_id": str(keys.rows["pk_unified"].merchant_id)}, public_id="pk_other")

    assert caller.last.info.merchant_id == other.merchant_id

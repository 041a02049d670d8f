"""Every error that an endpoint declares is reached over HTTP, with the real actors behind it.

CASES has a request for each (endpoint, code) of the endpoints' own errors; what all endpoints of a kind share is tried
on every one of them below. An endpoint or a code without a case fails here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from falcon import testing

from api.endpoints import ANY_KEY, Endpoint
from api.routes import ENDPOINTS
from core.errors import DomainError, GatewayBusy, IdempotencyInProgress, IdempotencyKeyReused
from models import base
from models.base import StoreUnavailableError
from tests.api.conftest import Client, FakeCaller, Keys, code_of, path_of
from tests.api.live import Live
from tests.api.rows import UNIT

Case = Callable[[Live], testing.Result]

UNKNOWN: Final = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"
USD: Final = {"amount": "10", "currency": "USD"}
USDT: Final = USD | {"to_currency": "USDT", "network": "ethereum"}
ETHER: Final = {"amount": "1", "currency": "ETH", "network": "ethereum"}
WALLET: Final = {"currency": "USDT", "network": "ethereum"}
BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def sending(path: str, body: Any, **options: Any) -> Case:
    return lambda live: live.post(path, body, **options)


def without_rates(path: str, body: Any, condition: str = "true") -> Case:
    def case(live: Live) -> testing.Result:
        live.forget_rates(condition)
        return live.post(path, body)

    return case


def without_addresses(path: str, body: Any) -> Case:
    def case(live: Live) -> testing.Result:
        live.configure()
        return live.post(path, body)

    return case


def without_networks(live: Live) -> testing.Result:
    live.configure(ETHEREUM_RPC_URLS="", BSC_RPC_URLS="")
    return live.post("/v1/payment", USD)


def choosing(currency: str = "USDT", network: str | None = "ethereum", **columns: Any) -> Case:
    return lambda live: live.choose(live.agnostic(**columns), currency, network)


def choosing_without_rates(**columns: Any) -> Case:
    def case(live: Live) -> testing.Result:
        invoice_id = live.agnostic(**columns)
        live.forget_rates()
        return live.choose(invoice_id, "ETH")

    return case


def choosing_without_addresses(live: Live) -> testing.Result:
    live.configure()
    return live.choose(live.agnostic())


def not_ready(live: Live) -> testing.Result:
    live.queues.error = ConnectionError("redis is down")
    return live.client.simulate_get("/readyz")


def lookups(name: str, path: str, **more: Any) -> dict[tuple[str, str], Case]:
    return {
        (name, "payment.bad_uuid"): sending(path, {"uuid": "x"} | more),
        (name, "payment.no_lookup"): sending(path, {} | more),
        (name, "payment.not_found"): sending(path, {"uuid": UNKNOWN} | more),
    }


CASES: Final[dict[tuple[str, str], Case]] = {
    **{
        ("createPayment", code): sending("/v1/payment", body)
        for code, body in {
            "payment.bad_amount": USD | {"amount": "1e3"},
            "payment.unknown_currency": USD | {"currency": "KZT"},
            "payment.unknown_to_currency": USD | {"to_currency": "DOGE", "network": "ethereum"},
            "payment.to_currency_required": USD | {"network": "ethereum"},
            "payment.network_required": USD | {"to_currency": "USDT"},
            "payment.unsupported_network": USD | {"to_currency": "DAI", "network": "bsc"},
            "payment.bad_subtract": USDT | {"subtract": 101},
            "payment.bad_accuracy": USDT | {"accuracy_payment_percent": 0.00001},
            "payment.below_minimum": USDT | {"amount": "0.01"},
            "payment.bad_url_callback": USDT | {"url_callback": "http://169.254.169.254/"},
        }.items()
    },
    ("createPayment", "invoice.no_pay_asset"): without_networks,
    ("createPayment", "invoice.quote_failed"): without_rates("/v1/payment", USDT),
    ("createPayment", "invoice.fee_quote_failed"): without_rates("/v1/payment", ETHER),
    ("createPayment", "invoice.address_failed"): without_addresses("/v1/payment", USDT),
    **lookups("getPayment", "/v1/payment/info"),
    **lookups("getPaymentQr", "/v1/payment/qr"),
    **lookups("resendPayment", "/v1/payment/resend"),
    **lookups("resolvePayment", "/v1/payment/resolve", action="accept"),
    ("resolvePayment", "payment.bad_action"): sending("/v1/payment/resolve", {"uuid": UNKNOWN, "action": "steal"}),
    ("resolvePayment", "payment.not_resolvable"): lambda live: live.post(
        "/v1/payment/resolve", {"uuid": live.invoice(), "action": "accept"}
    ),
    ("listPayments", "payment.bad_cursor"): sending("/v1/payment/history", {"cursor": "x"}),
    ("listPayments", "payment.bad_date"): sending("/v1/payment/history", {"date_from": "yesterday"}),
    ("setAcceptedMethods", "accepted.unknown_method"): sending(
        "/v1/payment/accepted", {"accepted": [{"currency": "DOGE", "network": "ethereum"}]}
    ),
    ("setDiscount", "discount.bad_percent"): sending("/v1/payment/discount", WALLET | {"discount_percent": 100}),
    ("setDiscount", "payment.unknown_currency"): sending(
        "/v1/payment/discount", {"currency": "USD", "network": "ethereum", "discount_percent": 1}
    ),
    ("setDiscount", "payment.unsupported_network"): sending(
        "/v1/payment/discount", {"currency": "DAI", "network": "bsc", "discount_percent": 1}
    ),
    ("setAccuracy", "accuracy.bad_percent"): sending("/v1/payment/accuracy", {"accuracy_percent": 5.1}),
    ("getPublicPayment", "pay.bad_uuid"): lambda live: live.client.simulate_get("/v1/pay/x"),
    ("getPublicPayment", "pay.not_found"): lambda live: live.client.simulate_get(f"/v1/pay/{UNKNOWN}"),
    ("selectMethod", "pay.bad_uuid"): lambda live: live.choose("x"),
    ("selectMethod", "pay.not_found"): lambda live: live.choose(UNKNOWN),
    ("selectMethod", "pay.not_selectable"): lambda live: live.choose(live.invoice()),
    ("selectMethod", "pay.unknown_currency"): choosing("DOGE"),
    ("selectMethod", "pay.method_not_accepted"): choosing("DAI", "bsc"),
    ("selectMethod", "pay.below_minimum"): choosing(price_units=1),
    ("selectMethod", "payment.bad_amount"): choosing(price_units=10**10),
    ("selectMethod", "payment.network_required"): choosing("USDT", None),
    ("selectMethod", "invoice.expired"): lambda live: live.choose(live.invoice(status="select")),
    ("selectMethod", "invoice.quote_failed"): choosing_without_rates(),
    ("selectMethod", "invoice.fee_quote_failed"): choosing_without_rates(price_currency="ETH", price_units=UNIT),
    ("selectMethod", "invoice.address_failed"): choosing_without_addresses,
    ("createWallet", "wallet.unknown_currency"): sending("/v1/wallet", {"currency": "USD"}),
    ("createWallet", "wallet.no_network"): sending("/v1/wallet", {"currency": "USDT"}),
    ("createWallet", "wallet.unsupported_network"): sending("/v1/wallet", {"currency": "USDT", "network": "tron"}),
    ("createWallet", "invoice.address_failed"): without_addresses("/v1/wallet", WALLET),
    ("blockWallet", "wallet.no_address"): sending("/v1/wallet/block", {}),
    ("blockWallet", "wallet.static_not_found"): sending("/v1/wallet/block", {"address": "0x1"}),
    ("blockWallet", "request.bad_field"): sending("/v1/wallet/block", {"address": "\x00"}),
    ("getWallet", "wallet.bad_uuid"): sending("/v1/wallet/info", {"uuid": "x"}),
    ("getWallet", "wallet.no_address"): sending("/v1/wallet/info", {}),
    ("getWallet", "wallet.static_not_found"): sending("/v1/wallet/info", {"uuid": UNKNOWN}),
    ("renderQr", "qr.no_address"): sending("/v1/wallet/qr", {}),
    ("renderQr", "request.bad_field"): sending("/v1/wallet/qr", {"address": "\x00"}),
    ("registerWebhook", "webhook.no_url"): sending("/v1/webhooks", {}),
    ("registerWebhook", "webhook.bad_url"): sending("/v1/webhooks", {"url": "https://10.0.0.1/"}),
    ("listWebhookDeliveries", "webhook.bad_cursor"): sending("/v1/webhooks/deliveries", {"cursor": "x"}),
    ("redeliverWebhook", "webhook.not_found"): sending("/v1/webhooks/redeliver", {"delivery_id": UNKNOWN}),
    ("testWebhook", "webhook.no_url"): sending("/v1/webhooks/test", {}),
    ("setIpAllowlist", "allowlist.bad_ip"): sending("/v1/ip-allowlist", {"ips": ["x"]}),
    ("setIpAllowlist", "allowlist.locks_you_out"): sending("/v1/ip-allowlist", {"ips": ["203.0.113.7"]}),
    ("getReadiness", "gateway.not_ready"): not_ready,
}

# A body that breaks a field without a code of its own.
BAD_FIELDS: Final[dict[str, Any]] = {
    "createPayment": USD | {"theme": "blue"},
    "getPayment": {"order_id": 5},
    "listPayments": {"status": "payed"},
    "getPaymentQr": {"order_id": 5},
    "resolvePayment": {"action": "accept", "order_id": 5},
    "resendPayment": {"order_id": 5},
    "setAccuracy": {"enabled": "yes"},
    "createWallet": WALLET | {"order_id": "payoutlink:1"},
    "blockWallet": {"address": "0x1", "is_force_block": "no"},
    "getWallet": {"address": "0x1", "offset": -1},
    "listExchangeRates": {"currency_from": 5},
    "listWebhookDeliveries": {"status": "lost"},
    "redeliverWebhook": {},
    "testWebhook": {"event": "invoice.lost"},
}


def declared(code: str) -> list[Endpoint]:
    """Return the endpoints that declare a code as one of its kind."""
    return [e for e in ENDPOINTS if code in {error.code for error in e.all_errors()}]


def by_name(endpoint: Endpoint) -> str:
    return endpoint.name


def of_all(condition: Callable[[Endpoint], object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if condition(e)], ids=by_name)


def ask(client: Client, endpoint: Endpoint, **options: Any) -> testing.Result:
    """Send an endpoint's own example."""
    path, body = path_of(endpoint), endpoint.examples.get("request")
    if endpoint.rights is not None:
        return client.post(path, body, **options)
    if endpoint.request is None:
        return client.simulate_request(endpoint.method, path, **options)
    return client.public_post(path, body)


def test_every_declared_error_has_a_case_and_no_case_is_of_another() -> None:
    assert set(CASES) == {(e.name, error.code) for e in ENDPOINTS for error in e.errors}
    assert set(BAD_FIELDS) == {e.name for e in declared("request.bad_field")} - {"renderQr"}


@pytest.mark.parametrize(("name", "code"), CASES)
def test_a_declared_error_is_reached_with_its_status(live: Live, name: str, code: str) -> None:
    answer = CASES[name, code](live)

    error = next(error for error in BY_NAME[name].errors if error.code == code)
    assert (answer.status_code, code_of(answer)) == (error.status, code)


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_bad_field_is_reached(live: Live, name: str) -> None:
    answer = live.post(BY_NAME[name].path, BAD_FIELDS[name])

    assert (answer.status_code, code_of(answer)) == (400, "request.bad_field")


# What endpoints of a kind share -------------------------------------------------------------------------------------


def test_shared_errors_are_those_that_are_tried_below() -> None:
    own = {(e.name, error.code) for e in ENDPOINTS for error in e.errors}
    shared = {error.code for e in ENDPOINTS for error in e.all_errors() if (e.name, error.code) not in own}

    assert shared == {
        "auth.bad_timestamp", "merchant.unknown_key", "merchant.bad_signature", "auth.ip_not_allowed",
        "merchant.wrong_key_kind", "request.bad_json", "request.bad_field", "request.length_required",
        "request.not_found", "request.too_large", "request.bad_content_type", "auth.body_read", "idempotency.bad_key",
        "idempotency.in_progress", "idempotency.key_reused", "idempotency.unavailable", "gateway.busy",
        "gateway.internal_error",
    }  # fmt: skip


@of_all(lambda e: e.rights is not None)
def test_whoever_does_not_prove_a_key_is_refused(client: Client, keys: Keys, endpoint: Endpoint) -> None:
    refusals = {
        "auth.bad_timestamp": {"headers": {"X-Timestamp": "soon"}},
        "merchant.unknown_key": {"public_id": "pk_nobody"},
        "merchant.bad_signature": {"headers": {"X-Signature": "0" * 64}},
    }
    for code, options in refusals.items():
        answer = ask(client, endpoint, **options)
        assert (answer.status_code, code_of(answer)) == (401, code)
    keys.rows["pk_fenced"] = dataclasses.replace(keys.add("pk_fenced"), ip_allowlist=["203.0.113.7"])

    answer = ask(client, endpoint, public_id="pk_fenced")

    assert (answer.status_code, code_of(answer)) == (401, "auth.ip_not_allowed")


@of_all(lambda e: e.rights not in {None, ANY_KEY})
def test_a_key_of_the_wrong_kind_is_refused(client: Client, caller: FakeCaller, endpoint: Endpoint) -> None:
    kinds = ANY_KEY - (endpoint.rights or ANY_KEY)

    assert kinds
    for kind in kinds:
        answer = ask(client, endpoint, public_id=f"pk_{kind}")
        assert (answer.status_code, code_of(answer)) == (403, "merchant.wrong_key_kind")
    assert caller.calls == []


@of_all(lambda e: e.request is not None)
def test_a_body_that_cannot_be_read_exactly_is_refused(client: Client, caller: FakeCaller, endpoint: Endpoint) -> None:
    path, json_type = path_of(endpoint), {"Content-Type": "application/json"}
    not_json = (
        client.signed(path, b"[]") if endpoint.rights else client.simulate_post(path, body=b"[]", headers=json_type)
    )
    answers = {
        "request.bad_json": not_json,
        "request.length_required": client.simulate_post(path, headers=json_type | {"Transfer-Encoding": "chunked"}),
        "request.too_large": client.simulate_post(path, body=b" " * (1024 * 1024 + 1), headers=json_type),
        "request.bad_content_type": client.simulate_post(path, body=b"{}", headers={"Content-Type": "text/plain"}),
        "request.not_found": client.simulate_post(f"/{path}", body=b"{}", headers=json_type),
    }
    assert {code: code_of(answer) for code, answer in answers.items()} == {code: code for code in answers}
    cut = testing.create_environ(path=path, method="POST", body=b"{}", headers=json_type) | {"CONTENT_LENGTH": "9"}
    body = b"".join(client.app(cut, lambda *_: None))
    assert json.loads(body)["error"]["code"] == "auth.body_read"
    assert caller.calls == []


@of_all(lambda e: e.creates)
def test_a_creating_endpoint_has_all_of_idempotency(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    def answered(key: str) -> tuple[int, str]:
        answer = ask(client, endpoint, headers={"Idempotency-Key": key})
        return answer.status_code, code_of(answer)

    assert answered("x" * 256) == (400, "idempotency.bad_key")
    for error in (IdempotencyInProgress, IdempotencyKeyReused):
        caller.error = error()
        assert answered("k") == (409, error.code)
    keys.error = StoreUnavailableError("gone")
    client.public_id = "pk_payment"
    assert answered("k") == (503, "idempotency.unavailable")


@of_all(lambda e: e.actor is not None or e.rights is not None)
def test_a_gateway_that_cannot_do_it_now_is_busy(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    caller.error = GatewayBusy()
    keys.error = StoreUnavailableError("gone")

    answer = ask(client, endpoint)

    assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "gateway.busy", "1")


def test_a_public_read_without_its_store_is_busy(client: Client) -> None:
    base.connect("postgresql://nobody@127.0.0.1:1/nothing")

    assert code_of(client.simulate_get(f"/v1/pay/{UNKNOWN}")) == "gateway.busy"


@of_all(lambda e: e.actor is not None or e.rights is not None)
def test_what_nobody_foresaw_is_an_internal_error(
    client: Client, caller: FakeCaller, keys: Keys, endpoint: Endpoint
) -> None:
    caller.error = keys.error = ZeroDivisionError("secret words")

    answer = ask(client, endpoint)

    assert (answer.status_code, code_of(answer)) == (500, "gateway.internal_error")
    assert "secret words" not in answer.text


def test_no_error_is_declared_that_the_table_does_not_have() -> None:
    assert all(issubclass(error, DomainError) for e in ENDPOINTS for error in e.all_errors())

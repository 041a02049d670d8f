"""Rules for every request: path, method, ids, envelopes, lengths, origins."""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import structlog
from falcon import testing

from api.http.middleware import is_canonical
from api.routes import ENDPOINTS
from core.errors import GatewayBusy
from models.db import base
from models.db.base import StoreUnavailableError
from tests.api.conftest import Client, FakeCaller, code_of, message_of, path_of

GOOD = {"amount": "10", "currency": "USD"}
SIGNED = [endpoint for endpoint in ENDPOINTS if endpoint.rights is not None]
CROSS_ORIGIN = {
    "GET /v1/pay/{invoice_id}", "POST /v1/pay/{invoice_id}/select", "GET /v1/currencies", "GET /v1/claim/{token}",
    "POST /v1/claim/{token}", "GET /v1/link/{link_id}", "POST /v1/link/{link_id}/checkout",
}  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "//v1/payment", "/v1//payment", "/v1/payment/", "/v1/./payment", "/v1/x/../payment", "/v1/payment/..",
        "/v1%2Fpayment", "/%761/payment", "/v1/p%61yment", "/v1/payment%20", "/v1/payment%", "/v1/payment%zz",
        "/v1/payment#x", "/v1\\payment", "http://127.0.0.1/v1/payment", "v1/payment", "/v1/payment%2e", "/v1/%2E%2E/x",
        "/V1/payment", "/v1/Payment", "/nothing",
    ],
)  # fmt: skip
def test_a_path_in_any_other_spelling_is_not_found(client: Client, path: str) -> None:
    # As a server passes it on that makes the best of every target.
    env = testing.create_environ(path="/v1/payment", method="POST") | {
        "RAW_URI": path,
        "PATH_INFO": "/" + unquote(urlsplit(path).path).lstrip("/"),
    }
    answers: list[Any] = []

    body = b"".join(client.app(env, lambda status, headers: answers.append((status, dict(headers)))))

    assert answers[0][0].startswith("404")
    assert json.loads(body)["error"]["code"] == "request.not_found"


@pytest.mark.parametrize(
    "target", ["/", "/v1/payment", "/v1/payment?a=%2F//..", "/pay/a%20b", "/a-b_c.d~e", "/a...b", "/.well-known/x"]
)
def test_the_one_spelling_of_a_path_is_canonical(target: str) -> None:
    assert is_canonical(target)


def test_a_very_long_path_is_judged_in_a_moment() -> None:
    assert not is_canonical("/" + "a%20" * 200_000 + "%")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_another_method_is_refused_and_the_right_one_named(client: Client, method: str) -> None:
    answer = client.simulate_request(method, "/v1/payment")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    if method != "HEAD":
        assert code_of(answer) == "request.method_not_allowed"


@pytest.mark.filterwarnings("ignore::wsgiref.validate.WSGIWarning")
@pytest.mark.parametrize("method", ["FOO", "WEBSOCKET", "get"])
def test_an_invented_method_is_an_ordinary_error(client: Client, method: str) -> None:
    answer = client.simulate_request(method, "/healthz")

    assert answer.status_code in {400, 405}
    assert code_of(answer) in {"request.malformed", "request.method_not_allowed"}
    assert uuid.UUID(answer.headers["x-request-id"])


@pytest.mark.usefixtures("database")
def test_a_request_leaves_its_connection_to_other_threads(client: Client) -> None:
    base.one("SELECT 1")
    assert not base.db.is_closed()

    client.simulate_get("/nothing")

    assert base.db.is_closed()


def test_every_get_can_be_asked_for_its_head(client: Client) -> None:
    full, head = client.simulate_get("/v1/currencies"), client.simulate_head("/v1/currencies")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == full.headers["etag"]


def test_a_request_id_that_is_a_uuid_is_taken_over_and_follows_the_call(client: Client, caller: FakeCaller) -> None:
    given = "0190B3C6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"

    answer = client.post("/v1/payment", GOOD, headers={"X-Request-Id": given})

    assert answer.headers["x-request-id"] == given
    assert caller.last.info.request_id == given


@pytest.mark.parametrize(
    "given", ["", "x", "0190b3c65a3e7cc09d5e8f6f1a2b3c4d", "{0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d}", "a,b"]
)
def test_any_other_request_id_is_replaced(client: Client, given: str) -> None:
    answer = client.simulate_get("/healthz", headers={"X-Request-Id": given})

    assert answer.headers["x-request-id"] != given
    assert uuid.UUID(answer.headers["x-request-id"]).version == 7


@pytest.mark.parametrize("path", ["/nothing", "/v1/payment", "/v1/pay/x", "//"])
def test_errors_carry_an_id_too(client: Client, path: str) -> None:
    assert uuid.UUID(client.simulate_get(path).headers["x-request-id"])


def test_a_success_is_wrapped_and_never_stored_by_caches(client: Client, caller: FakeCaller) -> None:
    caller.result = {"uuid": "x"}

    answer = client.post("/v1/payment", GOOD)

    assert answer.json == {"state": 0, "result": {"uuid": "x"}}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("endpoint", SIGNED, ids=lambda e: e.name)
def test_signed_endpoints_take_json_objects_only(client: Client, endpoint: Any) -> None:
    for body in (b"", b"[]", b"1", b"{", b'{"a":1,"a":2}', b'{"a":NaN}'):
        answer = client.signed(endpoint.path, body)
        assert (answer.status_code, code_of(answer)) == (400, "request.bad_json")


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.request is not None], ids=lambda e: e.name)
def test_length_and_type_are_judged_before_anything_else(client: Client, endpoint: Any) -> None:
    path = path_of(endpoint)
    json_type = {"Content-Type": "application/json"}

    chunked = client.simulate_post(path, headers=json_type | {"Transfer-Encoding": "chunked"})
    large = client.simulate_post(path, body=b" " * (1024 * 1024 + 1), headers=json_type)
    text = client.simulate_post(path, body=b"{}", headers={"Content-Type": "text/plain"})

    assert (chunked.status_code, code_of(chunked)) == (411, "request.length_required")
    assert (large.status_code, code_of(large)) == (413, "request.too_large")
    assert (text.status_code, code_of(text)) == (415, "request.bad_content_type")


def test_a_body_of_exactly_the_limit_is_read(client: Client) -> None:
    fields = json.dumps(GOOD).encode()

    assert client.signed("/v1/payment", fields + b" " * (1024 * 1024 - len(fields))).status_code == 200


def test_a_body_that_stops_early_is_refused(client: Client) -> None:
    env = testing.create_environ(
        path="/v1/payment", method="POST", body=b"{}", headers={"Content-Type": "application/json"}
    )
    answers: list[Any] = []

    body = b"".join(client.app(env | {"CONTENT_LENGTH": "5"}, lambda status, _headers: answers.append(status)))

    assert answers[0].startswith("400")
    assert json.loads(body)["error"]["code"] == "auth.body_read"


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: e.name)
def test_only_the_public_payment_and_catalogue_endpoints_answer_other_origins(client: Client, endpoint: Any) -> None:
    path = path_of(endpoint, "no-uuid")
    headers = {"Origin": "https://shop.example", "Content-Type": "application/json"}

    answer = client.simulate_request(endpoint.method, path, headers=headers, body=b"{}" if endpoint.request else None)
    preflight = client.simulate_options(path, headers=headers | {"Access-Control-Request-Method": endpoint.method})

    if f"{endpoint.method} {endpoint.path}" in CROSS_ORIGIN:
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
        assert preflight.status_code == 204
        assert endpoint.method in preflight.headers["access-control-allow-methods"]
        assert "Content-Type" in preflight.headers["access-control-allow-headers"]
    else:
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert preflight.status_code == 405
        assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_no_signed_endpoint_is_open_to_other_origins() -> None:
    assert not [endpoint.name for endpoint in SIGNED if endpoint.cors]


@pytest.mark.parametrize(
    "name", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "X-HTTP-Method-Override"]
)
def test_forwarding_headers_change_nothing(client: Client, name: str) -> None:
    assert client.post("/v1/payment", GOOD, headers={name: "GET"}).status_code == 200


def test_a_busy_gateway_sends_retry_after(client: Client, caller: FakeCaller) -> None:
    caller.error = GatewayBusy()

    answer = client.post("/v1/payment", GOOD)

    assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "gateway.busy", "1")


class SurpriseError(Exception):
    pgcode = None


class CutShortError(Exception):
    pgcode = "57014"


def test_an_unforeseen_failure_shows_details_only_in_the_log(
    client: Client, caller: FakeCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[tuple[str, dict[str, Any], str]] = []

    class Log:
        def error(self, event: str, **facts: Any) -> None:
            logged.append((event, facts, structlog.contextvars.get_contextvars()["request_id"]))

    monkeypatch.setattr("api.http.errors.log", Log())
    caller.error = SurpriseError("the database password is hunter2")

    answer = client.post("/v1/payment", GOOD)

    assert (answer.status_code, code_of(answer)) == (500, "gateway.internal_error")
    assert "hunter2" not in answer.text
    assert logged == [("request.failed", {"exc_info": caller.error}, answer.headers["x-request-id"])]


@pytest.mark.parametrize("error", [StoreUnavailableError("gone"), CutShortError("statement timeout")])
def test_a_read_without_its_store_is_busy_and_not_a_defect(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_merchant_id: uuid.UUID) -> None:
        raise error

    monkeypatch.setattr("models.ledger.balances.read", fail)

    answer = client.post("/v1/balance", {})

    assert (answer.status_code, code_of(answer)) == (503, "gateway.busy")


def test_a_message_may_quote_text_that_utf8_cannot_encode(client: Client) -> None:
    answer = client.signed("/v1/payment", b'{"amount":"1","currency":"USD","theme":"\\ud800"}')

    assert code_of(answer) == "request.bad_field"
    assert message_of(answer).startswith("theme")

"""Refusals say what to do: a table of wrong calls, each with the words that lead its caller on."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from api.endpoints import Endpoint
from api.http.paths import Paths
from api.routes import ENDPOINTS
from core.errors import PaymentToCurrencyRequired
from core.secrets.signing import sign_request
from tests.api.conftest import NOW, Client, FakeCaller, code_of, message_of
from tests.api.live import Live

RAW: Final = b'{"amount":"10","currency":"USD"}'
FIXED: Final = {"amount_mode": "fixed", "amount_fixed": "5", "currency": "USD"}
RANGE: Final = {"amount_mode": "range", "currency": "USD", "amount_min": "1", "amount_max": "9"}
PAYOUT: Final = {
    "order_id": "p-1",
    "amount": "1",
    "currency": "USDT",
    "network": "ethereum",
    "address": "0x" + "1" * 40,
}
MISSING: Final = object()

PRICE: Final = {"amount": "10", "currency": "USD"}
AMOUNT: Final = "must be a decimal string without a sign, with a point and no other separator, such as 125.50"
URL: Final = "must be an absolute http or https URL, such as https://"
EMAIL: Final = "must be one e-mail address, such as buyer@mail.example"
UUID: Final = "must be a UUID with its four hyphens, such as"

# Path, right body, wrong fields, code, words of the message.
WRONG: Final[list[tuple[str, dict[str, Any], dict[str, Any], str, str]]] = [
    *(
        ("/v1/payment", PRICE, {"amount": amount}, "payment.bad_amount", words)
        for amount, words in (
            ("10,50", AMOUNT), ("-5", AMOUNT), ("+5", AMOUNT), ("1 000", AMOUNT), ("1e3", AMOUNT), ("$5", AMOUNT),
            (".5", AMOUNT), ("5.", AMOUNT), ("", "amount: is missing"), (MISSING, "amount: is missing"),
            (10.5, "expected string, got number"), (10, "expected string, got integer"), ("0", "must be above zero"),
            ("0.001", "at most 2 fractional digits"), ("9" * 50, "length <= 49"), (None, "amount: is missing"),
        )
    ),
    *(
        ("/v1/payment", PRICE, {"currency": code}, "payment.unknown_currency", words)
        for code, words in (
            ("usd", "Did you mean USD?"), ("Usd", "Did you mean USD?"), ("EURO", "Did you mean EUR?"),
            ("usdt", "Did you mean USDT?"), ("XBT", "Did you mean BTC?"), ("U SD", "must be a code without blanks"),
            (MISSING, "currency: is missing"), (5, "expected string, got integer"),
        )
    ),
    *(
        ("/v1/payment", PRICE | {"to_currency": "USDT"}, {"network": network}, "payment.unsupported_network", words)
        for network, words in (
            ("ETH", "Did you mean ethereum?"), ("erc20", "Did you mean ethereum?"), ("BEP20", "Did you mean bsc?"),
            ("TRC-20", "Did you mean tron?"), ("etherum", "Did you mean ethereum?"), ("nowhere", "network is unknown."),
            ("tron", "USDT is not offered on tron here; it is offered on ethereum, bsc."),
            ("bitcoin", "USDT is not offered on bitcoin here; it is offered on ethereum, bsc."),
        )
    ),
    ("/v1/payment", PRICE, {"to_currency": "usdt"}, "payment.unknown_to_currency", "Did you mean USDT?"),
    ("/v1/payment", PRICE, {"to_currency": "EUR"}, "payment.unknown_to_currency", "EUR is none. The coins are"),
    ("/v1/payment", PRICE, {"to_currency": "USDT"}, "payment.network_required", "name one of ethereum, bsc."),
    ("/v1/payment", PRICE, {"network": "bsc"}, "payment.to_currency_required", "needs a to_currency"),
    ("/v1/payment", PRICE, {"network": "bsc", "to_curency": "USDT"}, "payment.to_currency_required",
     "There is no field to_curency; did you mean to_currency?"),
    ("/v1/payment", PRICE, {"lifetme": 600, "subtract": 101}, "payment.bad_subtract", "did you mean lifetime?"),
    ("/v1/payment", PRICE, {"url_callback": "shop.example/hook"}, "payment.bad_url_callback", URL),
    ("/v1/payment", PRICE, {"url_callback": "http://127.0.0.1/"}, "payment.bad_url_callback", "url_callback: "),
    ("/v1/payment", PRICE, {"url_return": "javascript:alert(1)"}, "request.bad_field", URL),
    ("/v1/payment", PRICE, {"url_success": "ftp://shop.example"}, "request.bad_field", URL),
    ("/v1/payment", PRICE, {"payer_email": "buyer"}, "request.bad_field", EMAIL),
    ("/v1/payment", PRICE, {"payer_email": "a@b.example, c@d.example"}, "request.bad_field", EMAIL),
    ("/v1/payment", PRICE, {"theme": "blue"}, "request.bad_field", "theme: must be one of dark, light"),
    ("/v1/payment", PRICE, {"order_id": "refund:1"}, "request.bad_field", "begin neither with payoutlink:"),
    ("/v1/payment", PRICE, {"order_id": 77}, "request.bad_field", "order_id: expected string"),
    ("/v1/payment", PRICE, {"order_id": "x" * 256}, "request.bad_field", "length <= 255"),
    ("/v1/payment", PRICE, {"lifetime": "600"}, "request.bad_field", "lifetime: expected integer"),
    ("/v1/payment", PRICE, {"subtract": 101}, "payment.bad_subtract", "expected integer <= 100"),
    ("/v1/payment", PRICE, {"accuracy_payment_percent": 6}, "payment.bad_accuracy", "expected number <= 5.0"),
    ("/v1/payment", PRICE, {"is_payment_multiple": "yes"}, "request.bad_field", "expected boolean"),
    ("/v1/payment/info", {}, {"uuid": "1234"}, "payment.bad_uuid", UUID),
    ("/v1/payment/info", {}, {"uuid": "0190b3c65a3e7cc09d5e8f6f1a2b3c4d"}, "payment.bad_uuid", UUID),
    ("/v1/payment/info", {}, {}, "payment.no_lookup", "uuid or order_id"),
    ("/v1/payment/info", {}, {"orderid": "a-1"}, "payment.no_lookup", "did you mean order_id?"),
    ("/v1/payment/info", {}, {"id": "a-1"}, "payment.no_lookup", "uuid or order_id"),
    ("/v1/payment/history", {}, {"status": "done"}, "request.bad_field", "must be one of"),
    ("/v1/payment/history", {}, {"date_from": "yesterday"}, "payment.bad_date", "ISO 8601"),
    ("/v1/payment/history", {}, {"cursor": "next"}, "payment.bad_cursor", "cursor"),
    ("/v1/payment/resolve", {"order_id": "a"}, {"action": "pay"}, "payment.bad_action", "one of accept, refund"),
    ("/v1/payment/resolve", {"order_id": "a"}, {}, "payment.bad_action", "action: is missing"),
    ("/v1/payment/send-email", {"order_id": "a"}, {"email": "me"}, "email.bad_address", EMAIL),
    ("/v1/payment/link", RANGE, {"amount_min": MISSING}, "paylink.bad_min", "amount_min is missing"),
    ("/v1/payment/link", RANGE, {"amount_max": None}, "paylink.bad_max", "amount_max is missing"),
    ("/v1/payment/link", RANGE, {"amount_min": "1,5"}, "paylink.bad_min", "must be a decimal string, such as"),
    ("/v1/payment/link", FIXED, {"amount_fixed": MISSING}, "paylink.bad_amount", "amount_fixed is missing"),
    ("/v1/payment/link", FIXED, {"amount_mode": "free"}, "paylink.bad_mode", "must be one of"),
    ("/v1/payment/link", FIXED, {"amount_mode": MISSING}, "paylink.bad_mode", "amount_mode: is missing"),
    ("/v1/payment/link", FIXED, {"currency": "usd"}, "paylink.unknown_currency", "Did you mean USD?"),
    ("/v1/payment/link", FIXED, {"amount_fixd": "5", "amount_fixed": MISSING}, "paylink.bad_amount",
     "did you mean amount_fixed?"),
    ("/v1/payment/link/info", {}, {"link_id": "77"}, "paylink.bad_id", UUID),
    ("/v1/wallet", {"currency": "USDT", "network": "bsc"}, {"currency": "usdt"}, "wallet.unknown_currency", "USDT?"),
    ("/v1/wallet", {"currency": "USDT", "network": "bsc"}, {"currency": "EUR"}, "wallet.unknown_currency",
     "must be a coin"),
    ("/v1/wallet", {"currency": "USDT", "network": "bsc"}, {"network": "bep20"}, "wallet.unsupported_network",
     "Did you mean bsc?"),
    ("/v1/wallet", {"currency": "USDT", "network": "bsc"}, {"network": "tron"}, "wallet.unsupported_network",
     "it is offered on ethereum, bsc."),
    ("/v1/payout", PAYOUT, {"currency": "usdt"}, "payout.unknown_currency", "Did you mean USDT?"),
    ("/v1/payout", PAYOUT, {"network": "ETH"}, "payout.asset_mismatch", "Did you mean ethereum?"),
    ("/v1/payout", PAYOUT, {"network": "tron"}, "payout.asset_mismatch", "it is offered on ethereum, bsc."),
    ("/v1/payout", PAYOUT, {"network": MISSING}, "payout.asset_mismatch", "name one of ethereum, bsc."),
    ("/v1/payout", PAYOUT, {"amount": "1,5"}, "payout.bad_amount", AMOUNT),
    ("/v1/payout", PAYOUT, {"amount": MISSING}, "payout.bad_amount", "amount: is missing"),
    ("/v1/payout", PAYOUT, {"adress": "0x" + "1" * 40, "address": MISSING}, "payout.no_destination", "mean address?"),
    ("/v1/payout", PAYOUT, {"is_subtract": "no"}, "request.bad_field", "expected boolean"),
    ("/v1/payout/calculate", {"amount": "1", "currency": "USDT", "network": "bsc"}, {"currency": "ustd"},
     "payout.unknown_currency", "Did you mean USDT?"),
    ("/v1/payout/info", {}, {"uuid": "x"}, "payout.bad_uuid", UUID),
    ("/v1/transfer/to-personal", {"amount": "1", "currency": "USDT"}, {"currency": "usdt"},
     "transfer.unknown_currency", "Did you mean USDT?"),
    ("/v1/transfer/to-personal", {"amount": "1", "currency": "USDT"}, {"amount": "-1"}, "transfer.bad_amount", AMOUNT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "right", "wrong", "code", "words"), [pytest.param(*one, id=str(n)) for n, one in enumerate(WRONG)]
)
def test_a_wrong_call_is_answered_by_its_remedy(
    live: Live, path: str, right: dict[str, Any], wrong: dict[str, Any], code: str, words: str
) -> None:
    body = {name: value for name, value in (right | wrong).items() if value is not MISSING}

    answer = live.post(path, body)

    assert (code_of(answer), words in message_of(answer)) == (code, True), message_of(answer)


def refused(client: Client, body: bytes, **options: Any) -> tuple[str, str]:
    answer = client.signed("/v1/payment", body, **options)
    return code_of(answer), message_of(answer)


@pytest.mark.parametrize(
    ("timestamp", "code", "words"),
    [
        (
            str(NOW - 600),
            "merchant.bad_signature",
            "X-Timestamp is 600 s behind the gateway's clock; 300 s are",
        ),
        (str(NOW + 301), "merchant.bad_signature", "X-Timestamp is 301 s ahead of the gateway's clock"),
        (f"{NOW}123", "merchant.bad_signature", "X-Timestamp is in milliseconds; it must be in seconds."),
        (f"{NOW}.5", "auth.bad_timestamp", "must be whole Unix seconds, in digits alone"),
        ("2026-01-01T00:00:00Z", "auth.bad_timestamp", "must be whole Unix seconds, in digits alone"),
    ],
)
def test_a_wrong_timestamp_is_measured(client: Client, timestamp: str, code: str, words: str) -> None:
    seen, message = refused(client, RAW, timestamp=timestamp)
    assert (seen, words in message) == (code, True), message


def test_another_secret_or_body_is_named_as_a_mismatch(client: Client) -> None:
    wrong = sign_request("sk_other", str(NOW), "POST", "/v1/payment", RAW)
    words = "does not match the timestamp, method, path and body that arrived, or was made with another secret"
    assert words in refused(client, RAW, headers={"X-Signature": wrong})[1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "The body is empty; it must be a JSON object"),
        (b"[]", "no object: it must begin with {"),
        (b'"a"', "no object"),
        (b'{"amount":"10" "currency":"USD"}', "not JSON from byte 15 on"),
        ('{"ä":1,}'.encode(), "not JSON from byte 8 on"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b"amount=10", "not JSON from byte 0 on"),
    ],
)
def test_a_body_that_is_no_json_object_is_answered_by_the_place(client: Client, body: bytes, words: str) -> None:
    code, message = refused(client, body)
    assert (code, words in message) == ("request.bad_json", True), message


@pytest.mark.parametrize(
    ("method", "path", "meant"),
    [
        ("POST", "/v1/payments", "/v1/payment"),
        ("POST", "/v1/payment/", "/v1/payment"),
        ("POST", "//v1/payment", "/v1/payment"),
        ("POST", "/v1/payout/histroy", "/v1/payout/history"),
        ("GET", "/v1/walet", "/v1/wallet"),
    ],
)
def test_an_unknown_path_is_answered_by_the_nearest(client: Client, method: str, path: str, meant: str) -> None:
    answer = client.simulate_request(method, path)
    assert (code_of(answer), message_of(answer)) == (
        "request.not_found", f"There is no such endpoint. Did you mean {meant}?"
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/wp-admin/setup.php", "/v1/" + "a" * 4000, "/v1/payment/%2e%2e"])
def test_a_path_that_resembles_none_gets_no_proposal(client: Client, path: str) -> None:
    assert message_of(client.simulate_get(path)) == "There is no such endpoint."


def test_a_long_path_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflib.get_close_matches", lambda *_, **__: pytest.fail("compared"))
    Paths(["/v1/payment"]).text_for("/v1/payment" + "/a" * 50)


def test_a_wrong_method_is_answered_by_the_right_one(client: Client) -> None:
    assert message_of(client.simulate_get("/v1/payment")) == "The endpoint takes POST, not GET."


def test_ignored_fields_are_named_in_a_header(client: Client, caller: FakeCaller) -> None:
    hostile = {f"x{n}": n for n in range(20)} | {"a\r\nSet-Cookie: b": 1, "ü": 1, "": 1, "y" * 65: 1}
    for sent, named in (
        ({"to_curency": "USDT"}, "to_curency"),
        (hostile, ", ".join(f"x{n}" for n in range(10))),
        ({}, None),
    ):
        answer = client.post("/v1/payment", PRICE | sent)
        assert (answer.status_code, answer.headers.get("X-Unknown-Fields")) == (200, named)
    assert len(caller.calls) == 3


def test_a_misspelled_field_is_named_with_a_refusal_of_the_actor(client: Client, caller: FakeCaller) -> None:
    caller.error = PaymentToCurrencyRequired()
    answer = client.post("/v1/payment", PRICE | {"network": "bsc", "to_curency": "USDT", "colour": "red"})
    assert message_of(answer) == (
        "A fiat price with a network needs a to_currency. There is no field to_curency; did you mean to_currency?"
    )


@pytest.mark.parametrize("endpoint", [each for each in ENDPOINTS if each.request is not None], ids=lambda e: e.name)
def test_every_refused_value_is_answered_with_words_for_it(client: Client, endpoint: Endpoint) -> None:
    """Send each field a text that fits no pattern: no answer may be silent about the form, or fail to be one."""
    right = endpoint.examples["request"]
    for name in right:
        body = json.dumps(right | {name: "\x00 \x7f"}).encode()
        answer = client.signed(endpoint.path.replace("{", "").replace("}", ""), body)
        assert answer.status_code < 500, (name, answer.text)

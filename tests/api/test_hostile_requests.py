"""Requests that are built to be read in two ways, to overwhelm, or to be used twice: whole, through the real actors."""

from __future__ import annotations

import gzip
import json
import time
from typing import Final

import pytest

from api.endpoints import Endpoint
from api.routes import ENDPOINTS
from core.secrets.signing import sign_request
from models.db import base
from tests.api.conftest import NOW, SECRET, Client, FakeCaller, code_of, path_of
from tests.api.live import Live

GOOD: Final = {"amount": "10", "currency": "USD"}
RAW: Final = b'{"amount":"10","currency":"USD"}'
WITH_BODY: Final = [endpoint for endpoint in ENDPOINTS if endpoint.request is not None]
BY_ACTORS: Final = [endpoint for endpoint in WITH_BODY if endpoint.actor is not None]
RTL: Final = "\u202eexe.drowssap\u2066"


def count(table: str) -> int:
    row = base.one(f"SELECT count(*) FROM {table}")
    assert row is not None
    return int(row[0])


# Replays ------------------------------------------------------------------------------------------------------------


def test_a_replay_with_the_same_key_gets_the_first_answer(live: Live) -> None:
    captured = {"headers": {"Idempotency-Key": "k"}}

    first, again = (live.client.signed("/v1/payment", RAW, **captured) for _ in range(2))  # type: ignore[arg-type]

    assert first.json == again.json
    assert again.headers["idempotent-replayed"] == "true"
    assert count("invoices") == 1


def test_a_replay_under_another_key_makes_another_payment_without_an_order_id(live: Live) -> None:
    # The key is not signed. A payment can only bring money in; requests that move it out are deduplicated by signature.
    def replayed(body: bytes) -> set[str]:
        answers = [
            live.client.signed("/v1/payment", body, headers={"Idempotency-Key": key})
            for key in (f"a{len(body)}", f"b{len(body)}")
        ]
        return {answer.json["result"]["uuid"] for answer in answers}

    assert len(replayed(RAW)) == 2
    assert len(replayed(b'{"amount":"10","currency":"USD","order_id":"order-1"}')) == 1


def test_a_replay_after_the_window_is_refused(live: Live) -> None:
    assert live.client.signed("/v1/payment", RAW, timestamp=str(NOW - 300)).status_code == 200
    assert code_of(live.client.signed("/v1/payment", RAW, timestamp=str(NOW - 301))) == "merchant.bad_signature"


@pytest.mark.parametrize("endpoint", [e for e in WITH_BODY if e.rights is not None], ids=lambda e: e.name)
def test_a_signature_of_one_endpoint_opens_no_other(client: Client, caller: FakeCaller, endpoint: Endpoint) -> None:
    body = json.dumps(endpoint.examples["request"]).encode()
    elsewhere = sign_request(SECRET, str(NOW), "POST", f"{endpoint.path}/", body)

    answer = client.signed(endpoint.path, body, headers={"X-Signature": elsewhere})

    assert code_of(answer) == "merchant.bad_signature"
    assert caller.calls == []


@pytest.mark.parametrize("place", range(0, len(RAW), 4))
def test_one_flipped_bit_of_the_body_is_enough(client: Client, place: int) -> None:
    flipped = bytes(byte ^ (at == place) for at, byte in enumerate(RAW))
    right = sign_request(SECRET, str(NOW), "POST", "/v1/payment", RAW)

    assert code_of(client.signed("/v1/payment", flipped, headers={"X-Signature": right})) == "merchant.bad_signature"


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(GOOD, indent=1),
        json.dumps(GOOD),
        '{"currency":"USD","amount":"10"}',
        '{"amount":"\\u0031\\u0030","currency":"USD"}',
    ],
)
def test_a_re_serialised_body_is_another_one(client: Client, body: str) -> None:
    right = sign_request(SECRET, str(NOW), "POST", "/v1/payment", RAW)
    assert json.loads(body) == GOOD

    answer = client.signed("/v1/payment", body.encode(), headers={"X-Signature": right})
    assert code_of(answer) == "merchant.bad_signature"


# Bodies -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "GZIP", "identity, gzip", "zstd"])
def test_a_compressed_bomb_is_refused_and_never_opened(client: Client, encoding: str) -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    assert len(bomb) < 1024 * 1024
    started_at = time.process_time()

    answer = client.signed("/v1/payment", bomb, headers={"Content-Encoding": encoding})

    assert (answer.status_code, code_of(answer)) == (415, "request.bad_content_type")
    assert time.process_time() - started_at < 0.5


READ_IN_TWO_WAYS: Final = (
    b'{"a":1,"a":1}', b'{"a":{"b":1,"\\u0062":2}}', b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":' * 65 + b"1" + b"}" * 65, b"[" * 200_000, '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-16-be"),
    b"\xef\xbb\xbf{}", b'{"a":"\xed\xa0\x80"}', b'{"a":"\x00"}', b"{}{}", b"", b"null",
)  # fmt: skip


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=lambda e: e.name)
def test_json_that_two_parsers_could_read_differently_is_refused_everywhere(
    client: Client, caller: FakeCaller, endpoint: Endpoint
) -> None:
    path = path_of(endpoint)
    headers = {"Content-Type": "application/json"}
    for body in READ_IN_TWO_WAYS:
        signed = endpoint.rights is not None
        answer = client.signed(path, body) if signed else client.simulate_post(path, body=body, headers=headers)

        assert (answer.status_code, code_of(answer)) == (400, "request.bad_json"), body[:14]
    assert caller.calls == []


NUMBERS: Final = (
    b"1e400",
    b"-1e400",
    b"1E+999",
    b"9" * 4000,
    b"-" + b"9" * 400,
    b"0.1",
    b"-0",
    b"true",
    b"null",
    b"[]",
)


@pytest.mark.parametrize("field", ["lifetime", "subtract", "accuracy_payment_percent", "order_id", "amount"])
def test_a_number_of_any_size_is_refused_or_clamped_and_never_a_failure(live: Live, field: str) -> None:
    for number in NUMBERS:
        fields = {"amount": b'"10"', "currency": b'"USD"', field: number}
        body = b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in fields.items()) + b"}"

        answer = live.client.signed("/v1/payment", body)

        assert answer.status_code in {200, 400}, number
        assert answer.status_code == 400 or isinstance(answer.json["result"]["expired_at"], int)


TEXTS: Final = {
    "createPayment": ("order_id", "additional_data", "payer_email", "url_return", "url_success", "theme", "network"),
    "getPayment": ("order_id", "uuid"),
    "listPayments": ("cursor", "status", "currency", "network", "order_id", "date_from"),
    "getPaymentTimeline": ("uuid", "order_id"),
    "sendPaymentEmail": ("uuid", "order_id", "email"),
    "createWallet": ("currency", "network", "order_id"),
    "getWallet": ("uuid", "address"),
    "blockWallet": ("address",),
    "renderQr": ("address",),
    "registerWebhook": ("url",),
    "listExchangeRates": ("currency_from",),
}


@pytest.mark.parametrize("name", TEXTS)
def test_nul_and_unpaired_surrogates_are_refused_in_every_text(live: Live, name: str) -> None:
    endpoint = next(e for e in ENDPOINTS if e.name == name)
    codes = {error.code for error in endpoint.all_errors()}
    for field in TEXTS[name]:
        for text in ("\x00", "a\x00b", "\ud800", "a\udfffb"):
            answer = live.post(endpoint.path, endpoint.examples["request"] | {field: text})

            assert answer.status_code in {400, 404}, (field, text)
            assert code_of(answer) in codes
    assert count("invoices") == count("wallets") == 0


def test_right_to_left_marks_are_kept_as_they_are_and_change_no_markup(live: Live) -> None:
    body = {**GOOD, "to_currency": "USDT", "network": "ethereum", "order_id": RTL, "additional_data": RTL}

    made = live.post("/v1/payment", body).json["result"]

    assert (made["order_id"], made["additional_data"]) == (RTL, RTL)
    assert live.post("/v1/payment/info", {"order_id": RTL}).json["result"]["uuid"] == made["uuid"]
    page = live.client.simulate_get(f"/pay/{made['uuid']}")
    assert page.status_code == 200


@pytest.mark.parametrize("endpoint", BY_ACTORS, ids=lambda e: e.name)
def test_fields_that_the_caller_must_not_set_reach_no_actor(
    client: Client, caller: FakeCaller, endpoint: Endpoint
) -> None:
    forbidden = {
        "merchant_id": "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d", "id": 1, "fee_ppm": 0, "fee": "0",
        "payment_status": "paid", "is_final": True, "payer_amount": "0", "source": "203.0.113.7",
        "secret": "s", "call_id": "x", "idem_key": "x",
        "invoice_id": "0190b3c6-0000-7cc0-9d5e-8f6f1a2b3c4d", "created_at": "2020-01-01T00:00:00Z", "__proto__": {},
    }  # fmt: skip
    if endpoint.request is not None and "source" in endpoint.request.__struct_fields__:
        del forbidden["source"]
    path, body = path_of(endpoint), endpoint.examples["request"] | forbidden

    plain, extended = (
        client.post(path, sent) if endpoint.rights else client.public_post(path, sent)
        for sent in (endpoint.examples["request"], body)
    )

    assert plain.status_code == extended.status_code == endpoint.status
    first, second = caller.calls
    assert first.payload == second.payload
    assert first.info.merchant_id == second.info.merchant_id
    # Only a key that no caller can send, made of the signature.
    assert second.info.idem_key is None or (endpoint.dedupes_signature and second.info.idem_key.startswith("\n"))


def test_a_payment_is_made_as_if_forbidden_fields_were_not_there(live: Live) -> None:
    body = GOOD | {
        "status": "paid",
        "payment_status": "paid",
        "fee_ppm": 0,
        "is_final": True,
        "url": "https://evil.example",
    }

    made = live.post("/v1/payment", body | {"merchant_id": str(live.stranger)}).json["result"]

    assert (made["payment_status"], made["is_final"], made["url"][:24]) == ("select", False, "https://pay.sluice.examp")
    assert base.rows("SELECT merchant_id, fee_ppm FROM invoices") == [(live.shop, 15_000)]


NO_ADDRESSES: Final = (
    "a\r\nBcc: x@mail.example",
    "a@b.example\nBcc: c@d.example",
    "a@b.example\r\n",
    "a@b.example, c@d.example",
    "<script>alert(1)</script>@b.example",
    '"a b"@b.example',
    "a\x00@b.example",
    "a\ud800@b.example",
    f"a{RTL}@b.example",
    "a@\u200fb.example",
    "a\u200b@b.example",
    "a\x85@b.example",
)


@pytest.mark.parametrize("value", NO_ADDRESSES)
def test_an_email_address_injects_no_header(live: Live, value: str) -> None:
    assert code_of(live.post("/v1/payment", GOOD | {"payer_email": value})) == "request.bad_field"
    sent = live.post("/v1/payment/send-email", {"uuid": live.invoice(), "email": value})
    assert code_of(sent) == "email.bad_address"


def test_a_sixth_email_within_the_hour_waits_in_the_shape_of_every_429(live: Live) -> None:
    live.configure(SMTP_URL="smtp://127.0.0.1:1")
    asked = {"uuid": live.invoice(), "email": "ann@mail.example"}

    answers = [live.post("/v1/payment/send-email", asked) for _ in range(6)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[-1].json.keys() == {"state", "message"}
    assert 3_590 < int(answers[-1].headers["retry-after"]) <= 3_600
    assert count("emails") == 5

"""Who signed is known exactly, or the request is refused: API reference, "Authentication"."""

from __future__ import annotations

import pytest
from falcon import testing

from api.http.auth import Authenticator
from core.errors import MerchantBadSignature, MerchantUnknownKey
from core.secrets.signing import sign_request
from models.db.base import StoreUnavailableError
from models.db.prefetch import ReadAhead
from models.merchants.rows import ApiKeyRow
from tests.api.conftest import NOW, SECRET, Client, FakeCaller, Keys, code_of

BODY = b'{"amount":"10","currency":"USD"}'


def signed(client: Client, **options: object) -> testing.Result:
    return client.signed("/v1/payment", BODY, **options)  # type: ignore[arg-type]


def test_a_signed_request_is_served_for_the_merchant_of_its_key(client: Client, caller: FakeCaller, keys: Keys) -> None:
    answer = signed(client)

    assert answer.status_code == 200
    assert caller.last.info.merchant_id == keys.rows["pk_unified"].merchant_id


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        "now",
        "1764000000.0",
        "1.764e9",
        "-1764000000",
        "+1764000000",
        " ",
        "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT SEVEN}",
        "0x69247800",
        "1_764_000_000",
    ],
)
def test_a_timestamp_that_is_no_number_is_refused_before_the_key_is_looked_for(
    client: Client, keys: Keys, timestamp: str
) -> None:
    # Headers travel as latin-1, so text beyond it arrives as the bytes of its UTF-8.
    answer = signed(client, timestamp=timestamp.encode().decode("latin-1"), public_id="pk_unknown")

    assert (answer.status_code, code_of(answer)) == (401, "auth.bad_timestamp")
    assert keys.asked == []


def test_a_missing_timestamp_is_refused(client: Client) -> None:
    answer = client.simulate_post("/v1/payment", body=BODY, headers={"Content-Type": "application/json"})

    assert (answer.status_code, code_of(answer)) == (401, "auth.bad_timestamp")


@pytest.mark.parametrize("offset_s", [-300, 0, 300])
def test_the_window_is_five_minutes_on_both_sides(client: Client, offset_s: int) -> None:
    assert signed(client, timestamp=str(NOW + offset_s)).status_code == 200


@pytest.mark.parametrize("offset_s", [-301, 301, 10**9, -NOW])
def test_a_timestamp_outside_the_window_is_a_bad_signature(client: Client, offset_s: int) -> None:
    answer = signed(client, timestamp=str(NOW + offset_s))

    assert (answer.status_code, code_of(answer)) == (401, "merchant.bad_signature")


@pytest.mark.parametrize("public_id", ["pk_unknown", "", "pk_ünknown", "'; DROP TABLE api_keys", "x" * 5000])
def test_an_unknown_key_is_refused_before_its_signature_is_checked(client: Client, public_id: str) -> None:
    answer = signed(client, headers={"X-Public-Id": public_id}, timestamp=str(NOW - 301))

    assert (answer.status_code, code_of(answer)) == (401, "merchant.unknown_key")


def signed_env(public_id: str, path: str = "/v1/payment", body: bytes = BODY) -> dict[str, str]:
    signature = sign_request(SECRET, str(NOW), "POST", path, body)
    return {"HTTP_X_PUBLIC_ID": public_id, "HTTP_X_TIMESTAMP": str(NOW), "HTTP_X_SIGNATURE": signature}


def test_a_revoked_key_works_for_a_second_at_most(keys: Keys) -> None:
    clock, env = [0.0], signed_env("pk_unified")
    authenticator = Authenticator(secret_box=keys.box, find_key=keys.find, now=lambda: NOW, monotonic=lambda: clock[0])
    authenticator.authenticate(env, "POST", "/v1/payment", BODY)
    del keys.rows["pk_unified"]

    clock[0] = 0.9
    authenticator.authenticate(env, "POST", "/v1/payment", BODY)
    clock[0] = 1.0
    with pytest.raises(MerchantUnknownKey):
        authenticator.authenticate(env, "POST", "/v1/payment", BODY)


def test_the_second_counts_from_before_a_key_is_read(keys: Keys) -> None:
    clock = [0.0]

    def slowly(public_id: str) -> ApiKeyRow | None:
        row = keys.find(public_id)
        clock[0] += 0.6
        return row

    authenticator = Authenticator(secret_box=keys.box, find_key=slowly, now=lambda: NOW, monotonic=lambda: clock[0])
    authenticator._open("pk_unified")
    # Revoked while it was read: a key that was read in advance must not be used for longer than any other.
    del keys.rows["pk_unified"]
    authenticator._key("pk_unified")
    clock[0] = 1.0

    with pytest.raises(MerchantUnknownKey):
        authenticator._key("pk_unified")


def test_a_key_that_proved_itself_is_read_ahead_and_no_other(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = ReadAhead()
    ahead.allow()
    monkeypatch.setattr("models.db.prefetch.AHEAD_S", 3600.0)
    monkeypatch.setattr("api.http.auth.ahead", ahead)
    clock, env = [0.0], signed_env("pk_unified")
    authenticator = Authenticator(secret_box=keys.box, find_key=keys.find, now=lambda: NOW, monotonic=lambda: clock[0])
    authenticator.authenticate(env, "POST", "/v1/payment", BODY)
    with pytest.raises(MerchantBadSignature):
        authenticator.authenticate(env | {"HTTP_X_PUBLIC_ID": "pk_payout"}, "POST", "/v1/payments", BODY)
    keys.asked.clear()
    clock[0] = 0.7
    ahead.read_all()
    clock[0] = 1.2
    authenticator.authenticate(env, "POST", "/v1/payment", BODY)
    assert keys.asked == ["pk_unified"]

    del keys.rows["pk_unified"]
    ahead.read_all()
    with pytest.raises(MerchantUnknownKey):
        authenticator.authenticate(env, "POST", "/v1/payment", BODY)


def test_the_keys_held_in_memory_are_bounded(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.http.auth.KEY_CACHE_SIZE", 2)
    authenticator = Authenticator(secret_box=keys.box, find_key=keys.find, now=lambda: NOW)
    for public_id in keys.rows:
        authenticator.authenticate(signed_env(public_id, "/", b""), "POST", "/", b"")

    assert len(authenticator._keys) <= 2


def test_a_key_is_read_once_a_second_however_often_it_signs(client: Client, keys: Keys) -> None:
    for _ in range(5):
        assert signed(client).status_code == 200

    assert keys.asked == ["pk_unified"]


@pytest.mark.parametrize(
    "signature",
    ["", "0" * 64, "é" * 64, "not hex", sign_request("sk_other", str(NOW), "POST", "/v1/payment", BODY)],
)
def test_another_signature_is_refused(client: Client, signature: str) -> None:
    answer = signed(client, headers={"X-Signature": signature})

    assert (answer.status_code, code_of(answer)) == (401, "merchant.bad_signature")


@pytest.mark.parametrize(
    ("method", "target", "body", "timestamp"),
    [
        ("POST", "/v1/payment", BODY.replace(b"10", b"11"), str(NOW)),
        ("POST", "/v1/payment", BODY + b" ", str(NOW)),
        ("POST", "/v1/payment/info", BODY, str(NOW)),
        ("POST", "/v1/payment?a=1", BODY, str(NOW)),
        ("PUT", "/v1/payment", BODY, str(NOW)),
        ("post", "/v1/PAYMENT", BODY, str(NOW)),
        ("POST", "/v1/payment", BODY, str(NOW + 1)),
    ],
)
def test_a_signature_holds_for_one_request_alone(
    client: Client, method: str, target: str, body: bytes, timestamp: str
) -> None:
    answer = signed(client, headers={"X-Signature": sign_request(SECRET, timestamp, method, target, body)})

    assert code_of(answer) == "merchant.bad_signature"


def test_an_upper_case_signature_is_another_one(client: Client) -> None:
    signature = sign_request(SECRET, str(NOW), "POST", "/v1/payment", BODY).upper()

    assert code_of(signed(client, headers={"X-Signature": signature})) == "merchant.bad_signature"


def test_the_query_is_signed_with_the_path(client: Client) -> None:
    without_query = sign_request(SECRET, str(NOW), "POST", "/v1/payment", BODY)

    assert client.signed("/v1/payment?trace=1", BODY).status_code == 200
    answer = client.signed("/v1/payment?trace=1", BODY, headers={"X-Signature": without_query})
    assert code_of(answer) == "merchant.bad_signature"


@pytest.mark.parametrize("name", ["X-Public-Id", "X-Timestamp", "X-Signature"])
def test_a_signing_header_sent_twice_is_a_bad_signature_even_if_both_are_right(client: Client, name: str) -> None:
    right = {
        "X-Public-Id": client.public_id,
        "X-Timestamp": str(NOW),
        "X-Signature": sign_request(SECRET, str(NOW), "POST", "/v1/payment", BODY),
    }[name]

    for joined in (f"{right},{right}", f"{right}, x", f",{right}"):
        answer = signed(client, headers={name: joined})
        assert (answer.status_code, code_of(answer)) == (401, "merchant.bad_signature")


@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        ("/v1/payment", BODY, "payment", 200),
        ("/v1/payment", BODY, "payout", 403),
        ("/v1/payment/info", b'{"order_id":"x"}', "payout", 403),
        ("/v1/webhooks", b'{"url":"https://shop.example"}', "payment", 201),
        ("/v1/webhooks", b'{"url":"https://shop.example"}', "payout", 403),
    ],
)
def test_a_legacy_key_reaches_its_own_endpoints_only(
    client: Client, path: str, body: bytes, kind: str, status: int
) -> None:
    answer = client.signed(path, body, public_id=f"pk_{kind}")

    assert answer.status_code == status
    if status == 403:
        assert code_of(answer) == "merchant.wrong_key_kind"


def test_the_allowlist_error_needs_a_proved_key(client: Client) -> None:
    answer = signed(client, public_id="pk_payout", headers={"X-Signature": "0" * 64})

    assert code_of(answer) == "merchant.bad_signature"


def test_nothing_of_a_body_is_believed_before_the_signature(client: Client) -> None:
    answer = client.signed("/v1/payment", b"{not json", headers={"X-Signature": "0" * 64})

    assert code_of(answer) == "merchant.bad_signature"


def test_without_the_store_no_key_is_known_and_nothing_happens(client: Client, keys: Keys, caller: FakeCaller) -> None:
    keys.error = StoreUnavailableError("connection refused")

    answer = signed(client)
    with_key = signed(client, headers={"Idempotency-Key": "k"})

    assert (answer.status_code, code_of(answer), answer.headers["retry-after"]) == (503, "gateway.busy", "1")
    assert (with_key.status_code, code_of(with_key)) == (503, "idempotency.unavailable")
    assert caller.calls == []


def test_a_key_whose_secret_does_not_open_is_our_fault(client: Client, keys: Keys) -> None:
    row = keys.add("pk_other").but(public_id="pk_unified")
    keys.rows["pk_unified"] = row

    answer = signed(client)

    assert (answer.status_code, code_of(answer)) == (500, "gateway.internal_error")
    assert row.secret_box not in answer.text

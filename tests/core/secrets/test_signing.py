"""Signs requests and webhooks as the specification says, and verifies only such signatures."""

import hashlib
import hmac

import pytest

from core.errors import AuthBadTimestamp, MerchantBadSignature
from core.secrets.signing import canonical_request, check_timestamp, sign_request, sign_webhook, verify_request

SECRET = "sk_test"
NOW = 1_700_000_000
BODY = b'{"amount":"1"}'
SIGNATURE = sign_request(SECRET, str(NOW), "POST", "/v1/payment", BODY)


def test_the_canonical_string_joins_four_parts_with_line_feeds() -> None:
    assert canonical_request("1", "post", "/v1/a?b=c", b"\xff\n") == b"1\nPOST\n/v1/a?b=c\n\xff\n"


def test_a_request_signature_is_lower_case_hex_of_hmac_sha256_over_the_canonical_string() -> None:
    message = b"1700000000\nPOST\n/v1/payment\n" + BODY
    assert hmac.new(b"sk_test", message, hashlib.sha256).hexdigest() == SIGNATURE


def test_a_webhook_signature_covers_timestamp_dot_body() -> None:
    assert sign_webhook(SECRET, 17, BODY) == hmac.new(b"sk_test", b"17." + BODY, hashlib.sha256).hexdigest()


def test_the_right_signature_verifies() -> None:
    assert verify_request(SECRET, str(NOW), "POST", "/v1/payment", BODY, signature=SIGNATURE)


@pytest.mark.parametrize(
    ("secret", "timestamp", "method", "target", "body"),
    [
        ("sk_other", str(NOW), "POST", "/v1/payment", BODY),
        (SECRET, str(NOW + 1), "POST", "/v1/payment", BODY),
        (SECRET, f"0{NOW}", "POST", "/v1/payment", BODY),
        (SECRET, str(NOW), "GET", "/v1/payment", BODY),
        (SECRET, str(NOW), "POST", "/v1/payout", BODY),
        (SECRET, str(NOW), "POST", "/v1/payment?a=b", BODY),
        (SECRET, str(NOW), "POST", "/v1/payment", b'{"amount": "1"}'),
        (SECRET, str(NOW), "POST", "/v1/payment", b""),
    ],
)
def test_a_signature_of_anything_else_does_not_verify(
    secret: str, timestamp: str, method: str, target: str, body: bytes
) -> None:
    assert not verify_request(secret, timestamp, method, target, body, signature=SIGNATURE)


@pytest.mark.parametrize(
    "signature",
    ["", SIGNATURE.upper(), SIGNATURE[:-1], SIGNATURE + "0", f" {SIGNATURE}", "é" * 64, "\udcff" * 64, "\uff10" * 64],
)
def test_a_malformed_signature_does_not_verify(signature: str) -> None:
    assert not verify_request(SECRET, str(NOW), "POST", "/v1/payment", BODY, signature=signature)


def test_a_target_with_surrogates_does_not_verify() -> None:
    assert not verify_request(SECRET, str(NOW), "POST", "/\ud800", BODY, signature=SIGNATURE)


@pytest.mark.parametrize("offset", [-300, 0, 300])
def test_the_time_window_includes_its_bounds(offset: int) -> None:
    assert check_timestamp(str(NOW + offset), now=NOW) == NOW + offset


@pytest.mark.parametrize("timestamp", [str(NOW - 301), str(NOW + 301), "0", "999999999999", str(NOW * 1000)])
def test_a_timestamp_outside_the_window_is_a_bad_signature(timestamp: str) -> None:
    with pytest.raises(MerchantBadSignature):
        check_timestamp(timestamp, now=NOW)


@pytest.mark.parametrize(
    "timestamp",
    [None, "", "abc", " 1700000000", "1700000000\n", "+1700000000", "-1", "1_700_000_000", "1.7e9", "1700000000.0",
     "\uff11\uff17" + "\uff10" * 8, "\u0663", "1" * 21, "0x10"],
)  # fmt: skip
def test_a_timestamp_that_is_no_ascii_number_is_refused(timestamp: str | None) -> None:
    with pytest.raises(AuthBadTimestamp):
        check_timestamp(timestamp, now=NOW)

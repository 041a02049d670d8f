"""Signs and verifies requests and webhooks (the specification, sections Authentication and Events).

Called by api's authentication, by actors.webhooks.deliver, and by code that plays a merchant (demo, benchmarks, tests).
"""

import hmac
import re

from core.errors import AuthBadTimestamp, MerchantBadSignature

WINDOW_S = 300

# ASCII digits alone: int() would take signs, blanks, underscores and full-width digits. Milliseconds are a number too,
# one that is far outside the window.
_TIMESTAMP = re.compile(r"[0-9]{1,20}")


def canonical_request(timestamp: str, method: str, target: str, body: bytes) -> bytes:
    """Return the bytes that a request's signature covers; target is the raw request target with its query."""
    head = f"{timestamp}\n{method.upper()}\n{target}\n"
    # Surrogates can only come from a hostile header; they must lead to a mismatch, not to an exception.
    return head.encode("utf-8", "surrogatepass") + body


def sign_request(secret: str, timestamp: str, method: str, target: str, body: bytes) -> str:
    """Return the X-Signature of a request in lower-case hex."""
    return _hmac_hex(secret, canonical_request(timestamp, method, target, body))


def verify_request(secret: str, timestamp: str, method: str, target: str, body: bytes, *, signature: str) -> bool:
    """Return True if `signature` is the request's, compared in constant time. Any text may be passed."""
    expected = sign_request(secret, timestamp, method, target, body)
    # As bytes: compare_digest raises on non-ASCII text.
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass"))


def check_timestamp(timestamp: str | None, *, now: int) -> int:
    """Return X-Timestamp in unix seconds; now is the real clock's, which no development clock moves.

    Raises AuthBadTimestamp when it is absent or not a number, MerchantBadSignature when it is outside the window.
    """
    if timestamp is None:
        raise AuthBadTimestamp("X-Timestamp is missing.")
    if _TIMESTAMP.fullmatch(timestamp) is None:
        raise AuthBadTimestamp("X-Timestamp must be whole Unix seconds, in digits alone.")
    seconds = int(timestamp)
    if abs(now - seconds) > WINDOW_S:
        raise MerchantBadSignature(_lateness(seconds, now))
    return seconds


def _lateness(seconds: int, now: int) -> str:
    """Return the sentence that says by how much a timestamp misses the window, or in which unit it must be."""
    if abs(now - seconds // 1000) <= WINDOW_S:
        return "X-Timestamp is in milliseconds; it must be in seconds."
    late_s = now - seconds
    side = "behind" if late_s > 0 else "ahead of"
    return f"X-Timestamp is {abs(late_s)} s {side} the gateway's clock; {WINDOW_S} s are allowed."


def sign_webhook(secret: str, timestamp: int, body: bytes) -> str:
    """Return the X-Webhook-Signature over timestamp, a dot and the raw body, in lower-case hex."""
    return _hmac_hex(secret, b"%d." % timestamp + body)


def _hmac_hex(secret: str, message: bytes) -> str:
    return hmac.digest(secret.encode(), message, "sha256").hex()

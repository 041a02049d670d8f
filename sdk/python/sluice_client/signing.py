"""Signs requests and checks webhooks. Source: API reference, "Authentication" and "Webhooks"."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sluice_client.errors import InvalidWebhookError

TOLERANCE_S: Final = 300


def sign(secret: str, timestamp: str, method: str, path: str, body: bytes) -> str:
    """Return the signature of a request: path as sent, with its query; body as its exact bytes."""
    message = b"\n".join((timestamp.encode(), method.upper().encode(), path.encode(), body))
    return hmac.digest(secret.encode(), message, "sha256").hex()


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> Any:
    """Return a webhook's body, once its signature is right by one of the secrets.

    Give the new and the old secret while you change from one to the other; an empty one counts as not given. `body` is
    the exact bytes that arrived.
    Remember `X-Webhook-Id` of those that you processed: each delivery can arrive more than once.

    Raises InvalidWebhookError: not signed by these secrets, changed on its way, or sent too long ago.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = lowered.get("x-webhook-timestamp", ""), lowered.get("x-webhook-signature", "")
    _check_signature(body, timestamp, signature, [secrets] if isinstance(secrets, str) else [*secrets])
    age_s = (time.time() if now is None else now) - int(timestamp)
    if abs(age_s) > tolerance_s:
        raise InvalidWebhookError(f"the webhook was sent {age_s:.0f} s ago")
    return json.loads(body)


def _check_signature(body: bytes, timestamp: str, signature: str, secrets: Sequence[str]) -> None:
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise InvalidWebhookError("X-Webhook-Timestamp is missing or malformed")
    message = timestamp.encode() + b"." + body
    expected = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest() for secret in secrets if secret]
    # Every secret is compared, so that the time shows nothing.
    matches = [hmac.compare_digest(each.encode(), signature.encode()) for each in expected]
    if not any(matches):
        raise InvalidWebhookError("the signature is not that of these bytes under a secret of yours")

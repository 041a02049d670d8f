"""The smallest client of the API: signs, sends, unwraps. The demonstration uses it; a shop's client looks like it."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import urllib3

from core.secrets.signing import sign_request

TIMEOUT_S: Final = 30.0
REFUSED_FROM: Final = 400


class ApiError(Exception):
    """A refusal of the gateway; code is the specification's, section Errors."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class Client:
    """One API key at one gateway. Safe to share between threads."""

    def __init__(self, base_url: str, *, public_id: str, secret: str) -> None:
        self._base_url = base_url
        self._public_id = public_id
        self._secret = secret
        self._pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT_S)

    def post(self, path: str, body: dict[str, object], *, idempotency_key: str | None = None) -> Any:
        """Return the result of a signed call. Raises ApiError, and urllib3's HTTPError without an answer."""
        # Serialised once: the signature covers exactly the bytes that are sent.
        raw = json.dumps(body).encode()
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "X-Public-Id": self._public_id,
            "X-Timestamp": timestamp,
            "X-Signature": sign_request(self._secret, timestamp, "POST", path, raw),
        }
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return self._send(path, raw, headers)

    def post_public(self, path: str, body: dict[str, object]) -> Any:
        """Return the result of a call that needs no signature, as a buyer's or recipient's browser makes it."""
        return self._send(path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send(self, path: str, raw: bytes, headers: dict[str, str]) -> Any:
        response = self._pool.request("POST", self._base_url + path, body=raw, headers=headers)
        return _unwrap(response.status, response.data)


def _unwrap(status: int, raw: bytes) -> Any:
    try:
        answer = json.loads(raw)
    except ValueError:
        raise ApiError(status, "unreadable", raw[:200].decode(errors="replace")) from None
    if status >= REFUSED_FROM:
        error = answer.get("error", {})
        raise ApiError(status, error.get("code", "unknown"), error.get("message", answer.get("message", "")))
    # POST /v1/webhooks alone answers with a bare object.
    return answer["result"] if "state" in answer else answer

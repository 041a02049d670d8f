"""A merchant's own code: signs requests as the API reference says, and shares nothing with the gateway."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

import urllib3

RETRY_S = 0.5
GIVE_UP_S = 90.0


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def result(self) -> Any:
        assert self.status == 200, f"{self.status}: {self.body}"
        assert self.body["state"] == 0
        return self.body["result"]


class Merchant:
    def __init__(self, base_url: str, public_id: str, secret: str) -> None:
        self.base_url, self.public_id, self.secret = base_url, public_id, secret
        self.pool = urllib3.PoolManager(maxsize=16, retries=False)

    def post(self, path: str, body: dict[str, Any], *, key: str | None = None) -> Answer:
        raw = json.dumps(body).encode()
        stamp = str(int(time.time()))
        canonical = b"\n".join([stamp.encode(), b"POST", path.encode(), raw])
        headers = {
            "Content-Type": "application/json",
            "X-Public-Id": self.public_id,
            "X-Timestamp": stamp,
            "X-Signature": hmac.new(self.secret.encode(), canonical, hashlib.sha256).hexdigest(),
        }
        if key is not None:
            headers["Idempotency-Key"] = key
        return self._send("POST", path, raw, headers)

    def get(self, path: str) -> Answer:
        return self._send("GET", path, None, {})

    def _send(self, method: str, path: str, raw: bytes | None, headers: dict[str, str]) -> Answer:
        # A connection of its own for each call: a kept one may be closed by the server at the moment of its next use.
        headers = headers | {"Connection": "close"}
        response = self.pool.request(method, self.base_url + path, body=raw, headers=headers, timeout=30)
        return Answer(response.status, json.loads(response.data), dict(response.headers))

    def insist(self, path: str, body: dict[str, Any]) -> Any:
        """Repeat a creating call with one Idempotency-Key until it is answered, as a careful merchant does."""
        key, end = uuid.uuid4().hex, time.monotonic() + GIVE_UP_S
        while True:
            try:
                answer = self.post(path, body, key=key)
                if answer.status == 200 or (answer.status < 500 and answer.status != 409):
                    return answer.result
            except urllib3.exceptions.HTTPError:
                answer = None
            assert time.monotonic() < end, f"{path} was not answered in {GIVE_UP_S} s; last: {answer}"
            time.sleep(RETRY_S)

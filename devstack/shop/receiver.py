"""Receives a shop's webhooks on loopback, for the demonstration and `sluice dev listen`.

Verifies by its own code, not by the gateway's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

PATH: Final = "/hook"
BODY_BYTES_MAX: Final = 64 * 1024
# The greatest age of a webhook, either way (docs/webhooks.md).
AGE_S_MAX: Final = 300
OK: Final = 200


@dataclass(frozen=True)
class Delivery:
    """One webhook as received."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> str:
        """Return the kind of event."""
        return self.headers.get("X-Webhook-Event", "")

    def payload(self) -> Any:
        """Return the body's object."""
        return json.loads(self.body)

    def is_genuine(self, secret: str) -> bool:
        """Return True if these exact bytes were signed with the secret (the specification, section Events)."""
        signed = self.headers.get("X-Webhook-Timestamp", "").encode() + b"." + self.body
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        return hmac.compare_digest(expected.encode(), self.headers.get("X-Webhook-Signature", "").encode())

    def fault(self, secret: str, *, now_s: float) -> str:
        """Return the reason for which a shop must refuse it, or ''."""
        if not self.is_genuine(secret):
            return "the signature does not match the body's bytes, the timestamp and this secret"
        # The signature covers the timestamp, so that it is a number.
        age_s = now_s - int(self.headers["X-Webhook-Timestamp"])
        return f"the timestamp is {age_s:.0f} s old" if abs(age_s) > AGE_S_MAX else ""


class Receiver:
    """Listens inside its `with` block; deliveries wait in a queue.

    answer: returns the status that a delivery is answered with; 200 without it.
    """

    def __init__(self, *, port: int = 0, answer: Callable[[Delivery], int] = lambda _: OK) -> None:
        self.deliveries: queue.Queue[Delivery] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self.deliveries, answer))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def url(self) -> str:
        """Return the address for webhooks."""
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(deliveries: queue.Queue[Delivery], answer: Callable[[Delivery], int]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.headers.get("Content-Length", "")
            length = int(text) if text.isascii() and text.isdigit() else 0
            if self.path != PATH or not 0 < length <= BODY_BYTES_MAX:
                self.send_error(400)
                return
            delivery = Delivery(dict(self.headers.items()), self.rfile.read(length))
            self.send_response(answer(delivery))
            self.send_header("Content-Length", "0")
            self.end_headers()
            deliveries.put(delivery)

        def log_message(self, *_: object) -> None:
            """Log nothing: the demonstration shows the deliveries."""

    return Handler

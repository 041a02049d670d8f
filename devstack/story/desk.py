"""Pays, and moves the clock, when a development gateway's payment page asks for it. Started by devstack.stack.

api.pages.development asks. The desk listens on loopback and knows only its own address with a secret in it, so that no
page of another site can spend. All its money is on development chains.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from chains.base import ProviderError
from core.catalogue.catalogue import load_catalogue
from devstack.chains import DevelopmentChain
from devstack.supervise.ports import LOOPBACK
from models.db import base

SECRET_BYTES: Final = 16
BODY_BYTES_MAX: Final = 4096
_REFUSALS: Final = (ProviderError, LookupError, ValueError, base.StoreUnavailableError)

Act = Callable[[Mapping[str, Any]], dict[str, Any]]


class Desk:
    """Serves from open() to close(), one order at a time."""

    def __init__(self, chains: Sequence[DevelopmentChain], *, advance: Callable[[int], object]) -> None:
        """Take the chains to pay on, and the function that moves all clocks by seconds."""
        self._chains = {chain.network: chain for chain in chains}
        self._advance = advance
        self._lock = threading.Lock()
        self._path = f"/{secrets.token_urlsafe(SECRET_BYTES)}"
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _handler(self._acts()))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def url(self) -> str:
        """Return the desk's address, secret and all."""
        return f"http://{LOOPBACK}:{self._server.server_port}{self._path}"

    def open(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Serve no longer. May be called before open()."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _acts(self) -> dict[str, Act]:
        return {f"{self._path}/pay": self._pay, f"{self._path}/advance": self._move}

    def _pay(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Send a coin from the chain's buyer. Raises LookupError for a network or coin that is not here."""
        network = str(order["network"])
        pair = load_catalogue("development").pairs[str(order["currency"]), network]
        with self._lock:
            return {"txid": self._chains[network].pay(pair, to=str(order["to"]), units=int(order["units"]))}

    def _move(self, order: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._advance(int(order["seconds"]))
        return {}


def _handler(acts: Mapping[str, Act]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            act = acts.get(self.path)
            if act is None:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "there is no such order"})
                return
            try:
                length = min(int(self.headers.get("Content-Length") or 0), BODY_BYTES_MAX)
                self._answer(HTTPStatus.OK, act(json.loads(self.rfile.read(length))))
            except _REFUSALS as error:
                self._answer(HTTPStatus.BAD_REQUEST, {"error": f"{type(error).__name__}: {error}"})
            finally:
                base.release()

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args: object) -> None:
            pass

    return Handler

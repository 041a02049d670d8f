"""Serves the calls over HTTP as Bitcoin Core does, single or in batches, for clients with the password. Run by start.

In the older form a refused call is an HTTP error too; in JSON-RPC 2.0 it is an ordinary answer.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

import msgspec

from devstack.bitcoin.facade.calls import answer
from devstack.bitcoin.facade.faults import NO_METHOD, RefusedError
from devstack.bitcoin.facade.state import State

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
BODY_BYTES_MAX: Final = 32 * 1024 * 1024
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Server(ThreadingHTTPServer):
    """The HTTP server of one node."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], state: State, *, user: str, password: str) -> None:
        self.state = state
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; the second would wait until the first is acknowledged.
    disable_nagle_algorithm: ClassVar[bool] = True

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(size, BODY_BYTES_MAX))
        if not hmac.compare_digest(self.headers.get("Authorization", ""), self.server.login):
            self._say(HTTPStatus.UNAUTHORIZED, b"")
            return
        try:
            asked = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError):
            fault = {"code": PARSE_ERROR, "message": "Parse error"}
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, _encode({"result": None, "error": fault, "id": None}))
            return
        if isinstance(asked, list):
            self._say(HTTPStatus.OK, _encode([_reply(self.server.state, one)[1] for one in asked]))
        else:
            status, reply = _reply(self.server.state, asked)
            self._say(status, _encode(reply))

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _say(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _reply(state: State, asked: Any) -> tuple[HTTPStatus, Mapping[str, object]]:
    """Return the answer to a request, and its HTTP status."""
    if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
        return HTTPStatus.BAD_REQUEST, _failed({}, RefusedError(INVALID_REQUEST, "Invalid Request object"))
    try:
        with state.lock:
            result = answer(state, asked["method"], asked.get("params") or [])
    except RefusedError as fault:
        status = HTTPStatus.NOT_FOUND if fault.code == NO_METHOD else HTTPStatus.INTERNAL_SERVER_ERROR
        return HTTPStatus.OK if _is_newer(asked) else status, _failed(asked, fault)
    if _is_newer(asked):
        return HTTPStatus.OK, {"jsonrpc": "2.0", "result": result, "id": asked.get("id")}
    return HTTPStatus.OK, {"result": result, "error": None, "id": asked.get("id")}


def _failed(asked: Mapping[str, object], fault: RefusedError) -> Mapping[str, object]:
    error = {"code": fault.code, "message": fault.text}
    if _is_newer(asked):
        return {"jsonrpc": "2.0", "error": error, "id": asked.get("id")}
    return {"result": None, "error": error, "id": asked.get("id")}


def _is_newer(asked: Mapping[str, object]) -> bool:
    return asked.get("jsonrpc") == "2.0"

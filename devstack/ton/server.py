"""Serves a simulated chain over HTTP, as toncenter does. Started by tests in their own process.

Questions are JSON-RPC at any path. An answer says `ok` or not; an error is a text, with HTTP's own number.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from devstack.supervise.ports import LOOPBACK
from devstack.ton.answers import Fault, answer
from devstack.ton.simulator import Simulator

BODY_BYTES_MAX: Final = 1024 * 1024


class Server(ThreadingHTTPServer):
    """The HTTP server of one chain."""

    daemon_threads = True

    def __init__(self, simulator: Simulator, port: int = 0) -> None:
        self.simulator = simulator
        super().__init__((LOOPBACK, port), Handler)
        self.url = f"http://{LOOPBACK}:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: each answer would wait 40 ms for the client's kernel.
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        """Answer a question."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.send_error(413)
            return
        number: object = None
        try:
            asked = json.loads(self.rfile.read(length))
            number = asked.get("id")
            result = answer(self.server.simulator, str(asked["method"]), asked.get("params") or {})
        except (ValueError, KeyError, AttributeError) as error:
            self._reply(422, {"ok": False, "error": f"failed to parse request: {error}", "code": 422})
        except Fault as fault:
            refusal = {"ok": False, "error": fault.message, "code": fault.code}
            self._reply(fault.code, refusal | {"jsonrpc": "2.0", "id": number})
        else:
            self._reply(200, {"ok": True, "result": result, "jsonrpc": "2.0", "id": number})

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  named so where it is inherited
        """Log nothing."""

    def _reply(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

"""Serves a simulated chain over HTTP, as a node does. Started by node as a process, or by tests in their own."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

import typer

from devstack.supervise.ports import LOOPBACK
from devstack.tron.answers import answer
from devstack.tron.simulator import SOLIDITY_LAG, Simulator

BODY_BYTES_MAX: Final = 4 * 1024 * 1024


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
        """Answer a request with its parameters in the body."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.send_error(413)
            return
        try:
            asked = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            self._tell({"Error": "class com.alibaba.fastjson.JSONException : syntax error"})
            return
        self._answer(asked if isinstance(asked, dict) else {})

    def do_GET(self) -> None:
        """Answer a request with its parameters in the address."""
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  named so where it is inherited
        """Log nothing."""

    def _answer(self, asked: dict[str, Any]) -> None:
        reply = answer(self.server.simulator, urlsplit(self.path).path.strip("/"), asked)
        if reply is None:
            self.send_error(404)
        else:
            self._tell(reply)

    def _tell(self, reply: object) -> None:
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _tick(simulator: Simulator, block_time_s: float) -> None:
    while True:
        time.sleep(block_time_s)
        simulator.mine()


def main(
    port: int,
    identity: str,
    path: Path,
    *,
    block_time_s: Annotated[float, typer.Option()] = 0.0,
    solidity_lag: Annotated[int, typer.Option()] = SOLIDITY_LAG,
) -> None:
    """Serve a chain that is kept in a file; without a block time it makes blocks on request."""
    simulator = Simulator(identity, solidity_lag=solidity_lag, path=path)
    if simulator.head.height == 0:
        # The first block has no time, from which transactions could expire.
        simulator.mine()
    if block_time_s:
        threading.Thread(target=_tick, args=(simulator, block_time_s), daemon=True).start()
    with Server(simulator, port) as server:
        server.serve_forever()


if __name__ == "__main__":
    typer.run(main)

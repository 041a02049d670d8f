"""Serves a simulated chain over HTTP. Inherited by the servers of the chains that run here without a real node."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from devstack.supervise.ports import LOOPBACK

C = TypeVar("C")


class ChainHandler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: each answer would wait 40 ms for the client's kernel.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  named so where it is inherited
        """Log nothing."""

    def reply(self, document: Any, status: int = 200) -> None:
        """Answer with a document in JSON."""
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Miner(Protocol):
    """A simulated chain that makes blocks."""

    def mine(self) -> int:
        """Make a block."""
        ...


class ChainServer(ThreadingHTTPServer, Generic[C]):
    """The HTTP server of one chain."""

    daemon_threads = True
    handler: ClassVar[type[BaseHTTPRequestHandler]]

    def __init__(self, simulator: C, port: int = 0) -> None:
        self.simulator = simulator
        super().__init__((LOOPBACK, port), self.handler)
        self.url = f"http://{LOOPBACK}:{self.server_port}"


def mine_every(chain: Miner, block_time_s: float) -> None:
    """Make a block each time that this many seconds have passed, in a thread of its own."""

    def tick() -> None:
        while True:
            time.sleep(block_time_s)
            chain.mine()

    threading.Thread(target=tick, daemon=True).start()

"""Serves blocks that a measurement has written, from a process of its own. Used by solana and ton.

The process is the chain's own module, called with the number of blocks; its time does not count.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Answer = Callable[[str, Any], str]


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes: each answer would wait 40 ms for the client's kernel.
    disable_nagle_algorithm = True
    # Takes a method and its parameters, and returns the result as text.
    answer: ClassVar[Answer]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = type(self).answer(asked["method"], asked.get("params") or {})
        body = f'{{"ok":true,"jsonrpc":"2.0","id":{asked["id"]},"result":{result}}}'.encode()
        is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body, 6) if is_packed else body
        self.send_response(200)
        if is_packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def served(module: str, count: int) -> Iterator[str]:
    """Start a module's process, and return its URL."""
    argv = [sys.executable, "-m", module, str(count)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def serve(answer: Answer) -> None:
    """Serve answers for good, after printing the port."""
    Handler.answer = staticmethod(answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()

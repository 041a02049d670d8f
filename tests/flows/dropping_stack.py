"""`sluice dev` whose processes reach their chain through a proxy that takes broadcasts and hangs up. For flows alone.

Run as a program in place of `python -m cli`. The proxy belongs to the same process; who pays asks the chain itself.
"""

from __future__ import annotations

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3
from urllib3.util import make_headers, parse_url

from cli.__main__ import main
from devstack.stack import Stack
from devstack.supervise.ports import LOOPBACK

# Every second broadcast is taken and its answer lost, the first one too.
EVERY = 2
# By the method that is called, or by the path.
BROADCASTS = frozenset(
    {"eth_sendRawTransaction", "sendrawtransaction", "/wallet/broadcasthex", "sendTransaction", "sendBoc"}
)


class Dropping(ThreadingHTTPServer):
    """Passes on whatever it is asked."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        url = parse_url(upstream)
        self.headers = make_headers(basic_auth=url.auth) | {"Content-Type": "application/json"}
        self.base = f"http://{url.netloc}"
        self.url = f"http://{LOOPBACK}:{self.server_port}"
        self.pool = urllib3.PoolManager(maxsize=16, retries=False)
        self._broadcasts = itertools.count()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def drops(self, path: str, body: bytes) -> bool:
        """Return True if the answer to this query is to be lost."""
        asked = json.loads(body)
        named = {path, asked.get("method")} if isinstance(asked, dict) else {path}
        return bool(BROADCASTS & named) and next(self._broadcasts) % EVERY == 0

    def handle_error(self, *_: object) -> None:
        """Say nothing: hanging up is what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: each answer would wait 40 ms for the client's kernel.
    disable_nagle_algorithm = True
    server: Dropping

    def do_POST(self) -> None:
        proxy, body = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        answer = proxy.pool.request("POST", proxy.base + self.path, body=body, headers=proxy.headers, timeout=10)
        if proxy.drops(self.path, body):
            raise ConnectionAbortedError
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        self.wfile.write(answer.data)

    def log_message(self, *_: object) -> None: ...


def through_proxies() -> None:
    """Have every stack of this process give its programs the proxies' addresses instead of the chains'."""
    direct = Stack.environment
    proxies: dict[str, Dropping] = {}

    def environment(self: Stack) -> dict[str, str]:
        variables = direct(self)
        for network, url in self.rpc_urls().items():
            if url not in proxies:
                proxies[url] = Dropping(url)
            variables[f"{network.upper()}_RPC_URLS"] = proxies[url].url
        return variables

    Stack.environment = environment


if __name__ == "__main__":
    through_proxies()
    main()

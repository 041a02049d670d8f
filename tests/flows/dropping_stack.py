"""`sluice dev` whose processes reach their chain through a proxy that takes broadcasts and hangs up. For flows alone.

Run as a program in place of `python -m cli`. The proxy belongs to the same process; who pays asks the chain itself.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from chains.net.json_rpc import JsonRpc, RpcError
from cli.__main__ import main
from cli.embedded.stack import Stack
from tests.peers.json_rpc_node import JsonRpcNode, Raw

# Every second broadcast is taken and its answer lost.
EVERY = 2
BROADCASTS = frozenset({"eth_sendRawTransaction", "sendrawtransaction"})


class Dropping(JsonRpcNode):
    def __init__(self, upstream: str) -> None:
        super().__init__({})
        self._upstream = JsonRpc(upstream, timeout_s=10)
        self._broadcasts = itertools.count(1)

    def read(self, path: str, body: Any) -> dict[str, Any]:
        """Return a request, or many as one of their method."""
        del path
        return {"method": body[0]["method"], "batch": body} if isinstance(body, list) else body

    def answer(self, request: Mapping[str, Any]) -> Raw:
        if "batch" in request:
            return Raw(b"[" + b",".join(self.answer(one).body for one in request["batch"]) + b"]")
        method = request["method"]
        envelope: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            envelope["result"] = self._upstream.call_or_none(method, request["params"], object)
        except RpcError as error:
            envelope["error"] = {"code": error.code, "message": error.text}
        if method in BROADCASTS and next(self._broadcasts) % EVERY == 0:
            return Raw(drop=True)
        return Raw(json.dumps(envelope).encode())


def through_proxies() -> None:
    """Have every stack of this process tell its programs the proxies' addresses instead of the chains'."""
    direct = Stack.environment
    proxies: dict[str, Dropping] = {}

    def environment(self: Stack) -> dict[str, str]:
        told = direct(self)
        for network, url in self.rpc_urls().items():
            if url not in proxies:
                proxies[url] = Dropping(url).__enter__()
            told[f"{network.upper()}_RPC_URLS"] = proxies[url].url
        return told

    Stack.environment = environment


if __name__ == "__main__":
    through_proxies()
    main()

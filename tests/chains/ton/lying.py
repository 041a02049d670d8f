"""A provider between the gateway and a simulated TON chain that lies, fails or lags as a test wants. Real HTTP.

lies[method] is the answer instead: a value, a Raw answer, a Refusal, or a function of the true answer and the named
parameters.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from devstack.ton.answers import Fault, answer
from devstack.ton.simulator import Simulator
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

Lie = Callable[[Any, dict[str, Any]], object] | object


class LyingTon(JsonRpcNode):
    """A provider that is honest until a test changes it. A context manager."""

    def __init__(self, chain: Simulator, *, key: str = "secret-key") -> None:
        super().__init__({}, key=key)
        self._chain = chain
        self.lies: dict[str, Lie] = {}
        # Instead of any answer at all.
        self.failure: Raw | Refusal | None = None

    def answer(self, request: Mapping[str, Any]) -> Raw:
        reply = self.failure or self._reply(request["method"], request["params"])
        if isinstance(reply, Raw):
            return reply
        if isinstance(reply, Refusal):
            refusal = {"ok": False, "error": reply.message, "code": reply.code, "id": request["id"]}
            return Raw(json.dumps(refusal).encode(), status=reply.code)
        return Raw(json.dumps({"ok": True, "result": reply, "jsonrpc": "2.0", "id": request["id"]}).encode())

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks of the masterchain."""

        def head(truth: Any, _asked: dict[str, Any]) -> Any:
            seqno = max(0, truth["last"]["seqno"] - blocks)
            truth["last"] = self._truth("getBlockHeader", {"workchain": -1, "shard": "0", "seqno": seqno})["id"]
            return truth

        def block(truth: Any, asked: dict[str, Any]) -> Any:
            is_later = asked.get("workchain", -1) == -1 and asked["seqno"] > self._chain.head.id.seqno - blocks
            return Refusal(500, "LITE_SERVER_NOTREADY: block is not applied") if is_later else truth

        self.lies |= {"getMasterchainInfo": head, "getBlockHeader": block, "shards": block}

    def _reply(self, method: str, asked: dict[str, Any]) -> object:
        lie = self.lies.get(method)
        if method in self.lies and not callable(lie):
            return lie
        truth = self._truth(method, asked)
        return lie(copy.deepcopy(truth), asked) if callable(lie) and not isinstance(truth, Refusal) else truth

    def _truth(self, method: str, asked: dict[str, Any]) -> Any:
        try:
            return answer(self._chain, method, asked)
        except Fault as fault:
            return Refusal(fault.code, fault.message)

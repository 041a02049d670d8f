"""A provider between the gateway and a real node that lies, fails or lags as a test wants. Real HTTP on loopback.

lies[method] is the answer instead: a value, a Raw answer, a Refusal, or a function of the truth and the parameters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from chains.net.json_rpc import JsonRpc, RpcError
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

Lie = Callable[[Any, list[Any]], object] | object

DOWN = Raw(drop=True)
HTML = Raw(b"<html>Please log in</html>", content_type="text/html")
GARBAGE = Raw(b'{"jsonrpc": "2.0", "id": 1, "result": {{{')


class LyingRpc(JsonRpcNode):
    """A provider that is honest until a test changes it."""

    def __init__(self, upstream: str, *, key: str = "secret-key") -> None:
        super().__init__({}, key=key)
        self._upstream = JsonRpc(upstream, timeout_s=10)
        self.lies: dict[str, Lie] = {}
        # Instead of any answer at all.
        self.failure: Raw | Refusal | None = None

    def answer(self, request: Mapping[str, Any]) -> Raw:
        method, params = request["method"], request["params"]
        if self.failure is not None:
            self.answers = {method: self.failure}
        elif method not in self.lies or callable(self.lies[method]):
            truth = self._truth(method, params)
            lie = self.lies.get(method)
            reply = lie(copy.deepcopy(truth), params) if callable(lie) and not isinstance(truth, Refusal) else truth
            self.answers = {method: reply}
        else:
            self.answers = {method: self.lies[method]}
        return super().answer(request)

    def _truth(self, method: str, params: list[Any]) -> object:
        try:
            return self._upstream.call_or_none(method, params, object)
        except RpcError as error:
            return Refusal(error.code, error.text)

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks."""

        def head(truth: str, _params: list[Any]) -> str:
            return hex(max(0, int(truth, 16) - blocks))

        def block(truth: Any, _params: list[Any]) -> Any:
            newest = int(str(self._truth("eth_blockNumber", [])), 16) - blocks
            return truth if truth is not None and int(truth["number"], 16) <= newest else None

        def receipt(truth: Any, _params: list[Any]) -> Any:
            newest = int(str(self._truth("eth_blockNumber", [])), 16) - blocks
            return truth if truth is not None and int(truth["blockNumber"], 16) <= newest else None

        self.lies |= {"eth_blockNumber": head, "eth_getBlockByNumber": block, "eth_getTransactionReceipt": receipt}

    def hide_logs(self, keep: int = 0) -> None:
        """Show at most this many logs of any list, and no receipts of whole blocks."""
        self.lies |= {
            "eth_getLogs": lambda truth, _params: truth[:keep],
            "eth_getBlockReceipts": Refusal(-32601, "the method does not exist"),
        }

    def cut_transactions(self) -> None:
        """Show the first transaction of a block alone, under a header that proves itself."""
        self.lies["eth_getBlockByNumber"] = lambda truth, params: (
            truth if truth is None or not params[1] else truth | {"transactions": truth["transactions"][:1]}
        )

    def hide_transactions(self, keep: int = 0) -> None:
        """Show at most this many transactions of a block, and no gas that would reveal the rest."""

        def block(truth: Any, params: list[Any]) -> Any:
            return truth if truth is None or not params[1] else truth | {
                "transactions": truth["transactions"][:keep], "gasUsed": "0x0",
            }  # fmt: skip

        self.lies["eth_getBlockByNumber"] = block

    def invent(self, height: int, log: Mapping[str, Any], receipt: Mapping[str, Any]) -> None:
        """Show a transfer in a block, which no other node has: in the logs, in its receipt, in the filter."""

        def logs(truth: list[Any], params: list[Any]) -> list[Any]:
            return [*truth, log] if params[0].get("blockHash") == log["blockHash"] else truth

        def receipts(truth: list[Any], params: list[Any]) -> list[Any]:
            return [*truth, receipt] if params[0] == hex(height) else truth

        def one(truth: Any, params: list[Any]) -> Any:
            return receipt if params[0] == receipt["transactionHash"] else truth

        self.lies |= {"eth_getLogs": logs, "eth_getBlockReceipts": receipts, "eth_getTransactionReceipt": one}

    def alter_amounts(self, factor: int) -> None:
        """Multiply what every log says."""
        self._alter_logs(lambda log: log | {"data": f"0x{int(log['data'], 16) * factor:064x}"})

    def alter_recipient(self, address: str) -> None:
        """Let every log say that an address was paid."""
        topic = "0x" + "0" * 24 + address[2:].lower()
        self._alter_logs(lambda log: log | {"topics": [*log["topics"][:2], topic]})

    def _alter_logs(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        def receipt(truth: Any, _params: list[Any]) -> Any:
            return truth and truth | {"logs": [change(log) for log in truth["logs"]]}

        self.lies |= {
            "eth_getLogs": lambda truth, _params: [change(log) for log in truth],
            "eth_getTransactionReceipt": receipt,
            "eth_getBlockReceipts": lambda truth, _params: [receipt(one, []) for one in truth],
        }

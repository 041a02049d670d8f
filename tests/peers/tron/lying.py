"""A provider between the gateway and a simulated chain with a path for each query; it lies, fails or lags.

lies[path] is the answer instead: a value, a Raw answer, or a function of the true answer and the query.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from devstack.tron.answers import answer
from devstack.tron.simulator import Simulator
from tests.peers.json_rpc_node import JsonRpcNode, Raw

Lie = Callable[[Any, Mapping[str, Any]], object] | object


class LyingRest(JsonRpcNode):
    """A provider that is honest until a test changes it. A context manager."""

    def __init__(self, chain: Simulator, *, key: str = "secret-key") -> None:
        super().__init__({}, key=key)
        self._chain = chain
        self._own = f"/v3/{key}/"
        self.lies: dict[str, Lie] = {}
        # Instead of any answer at all.
        self.failure: Raw | None = None

    def read(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"method": path.removeprefix(self._own), "params": body}

    def answer(self, request: Mapping[str, Any]) -> Raw:
        path, question = request["method"], request["params"]
        if self.failure is not None:
            return self.failure
        copied: object = copy.deepcopy(answer(self._chain, path, question))
        if path in self.lies:
            lie = self.lies[path]
            copied = lie(copied, question) if callable(lie) else lie
        if isinstance(copied, Raw):
            return copied
        return Raw(status=404) if copied is None else Raw(json.dumps(copied).encode())

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks, nor of what they hold."""

        def newest() -> int:
            return self._chain.head.height - blocks

        def head(_truth: object, _question: Mapping[str, Any]) -> object:
            return answer(self._chain, "wallet/getblockbynum", {"num": max(0, newest())})

        def block(truth: object, question: Mapping[str, Any]) -> object:
            return truth if int(question["num"]) <= newest() else {}

        def infos(truth: object, question: Mapping[str, Any]) -> object:
            return truth if int(question["num"]) <= newest() else []

        def info(truth: Any, _question: Mapping[str, Any]) -> object:
            return truth if truth.get("blockNumber", 0) <= newest() else {}

        def one(truth: Any, _question: Mapping[str, Any]) -> object:
            place = self._chain.places.get(truth.get("txID", ""), (0, 0))
            return truth if place[0] <= newest() else {}

        self.lies |= {
            "wallet/getnowblock": head,
            "wallet/getblockbynum": block,
            "wallet/gettransactioninfobyblocknum": infos,
            "wallet/gettransactioninfobyid": info,
            "wallet/gettransactionbyid": one,
        }

    def hide(self, recipient: str) -> None:
        """Show no transaction whose outcome names an address, by its 20 bytes in hex, wherever it is looked for."""

        def is_theirs(reply: object) -> bool:
            return recipient in json.dumps(reply)

        def block(truth: Any, _question: Mapping[str, Any]) -> object:
            kept = [one for one in truth.get("transactions", []) if not is_theirs(one)]
            return truth | {"transactions": kept} if truth else truth

        def infos(truth: Any, question: Mapping[str, Any]) -> object:
            shown = block(answer(self._chain, "wallet/getblockbynum", question), question)
            ids = {one["txID"] for one in shown.get("transactions", [])}  # type: ignore[attr-defined]
            return [info for info in truth if info["id"] in ids]

        def one(truth: object, _question: Mapping[str, Any]) -> object:
            return {} if is_theirs(truth) else truth

        for part in ("wallet", "walletsolidity"):
            self.lies |= {
                f"{part}/getblockbynum": block,
                f"{part}/gettransactioninfobyblocknum": infos,
                f"{part}/gettransactioninfobyid": one,
                f"{part}/gettransactionbyid": one,
            }

    def invent(self, height: int, transaction: Mapping[str, Any], info: Mapping[str, Any]) -> None:
        """Show a transaction in a block, which no other node has, in every answer about it."""

        def block(truth: Any, question: Mapping[str, Any]) -> object:
            if not truth or int(question["num"]) != height:
                return truth
            return truth | {"transactions": [*truth.get("transactions", []), transaction]}

        def infos(truth: Any, question: Mapping[str, Any]) -> object:
            return [*truth, info] if int(question["num"]) == height else truth

        def of_it(fields: Mapping[str, Any]) -> Callable[[object, Mapping[str, Any]], object]:
            return lambda truth, question: fields if question["value"] == info["id"] else truth

        for part in ("wallet", "walletsolidity"):
            self.lies |= {
                f"{part}/getblockbynum": block,
                f"{part}/gettransactioninfobyblocknum": infos,
                f"{part}/gettransactioninfobyid": of_it(info),
                f"{part}/gettransactionbyid": of_it(transaction),
            }

    def alter_amounts(self, factor: int) -> None:
        """Multiply what every log says."""

        def info(truth: Any, _question: object) -> Any:
            for log in truth.get("log", []):
                log["data"] = f"{int(log['data'], 16) * factor:064x}"
            return truth

        def infos(truth: Any, _question: object) -> object:
            return [info(one, None) for one in truth]

        for part in ("wallet", "walletsolidity"):
            self.lies |= {f"{part}/gettransactioninfobyblocknum": infos, f"{part}/gettransactioninfobyid": info}

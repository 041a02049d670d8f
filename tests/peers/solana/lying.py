"""A provider between the gateway and a simulated Solana chain that lies, fails, lags or forgets. Real HTTP on loopback.

lies[method] is the answer instead: a value, a Raw answer, a Refusal, or a function of the true answer and the
parameters. reach is the part of the chain that it knows at all.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from devstack.solana.answers import answer
from devstack.solana.blocks import Included
from devstack.solana.faults import CLEANED_UP, Fault
from devstack.solana.shapes import included_json
from devstack.solana.simulator import Simulator
from devstack.solana.view import WHOLE
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

Lie = Callable[[Any, list[Any]], object] | object


class LyingSolana(JsonRpcNode):
    """A provider that is honest until a test changes it. A context manager."""

    def __init__(self, chain: Simulator, *, key: str = "secret-key") -> None:
        super().__init__({}, key=key)
        self._chain = chain
        self.lies: dict[str, Lie] = {}
        self.reach = WHOLE
        # Instead of any answer at all.
        self.failure: Raw | Refusal | None = None

    def answer(self, request: Mapping[str, Any]) -> Raw:
        reply = self.failure or self._reply(request["method"], request["params"])
        return reply if isinstance(reply, Raw) else Raw(json.dumps(self.envelope(request, reply)).encode())

    def _reply(self, method: str, params: list[Any]) -> Any:
        lie = self.lies.get(method)
        if lie is not None and not callable(lie):
            return lie
        truth = self.truth(method, params)
        return truth if lie is None or isinstance(truth, Refusal) else lie(truth, params)

    def truth(self, method: str, params: list[Any]) -> Any:
        """Return the answer of an honest node that knows as much of the chain."""
        try:
            return copy.deepcopy(answer(self._chain, method, params, self.reach))
        except Fault as fault:
            return Refusal(fault.code, fault.message)

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks, nor of their contents."""
        self.reach = replace(self.reach, behind=blocks)

    def prune(self, first_slot: int, code: int = CLEANED_UP) -> None:
        """Keep no block before a slot, and refuse questions about one by this code."""
        self.reach = replace(self.reach, first_slot=first_slot, pruned_code=code)

    def lose(self, *slots: int) -> None:
        """Show these slots as if they had no block; the next block's parent slot still names them."""
        self.reach = replace(self.reach, lost=frozenset(slots))

    def hide(self, address: str) -> None:
        """Show no transaction that names an address, wherever it is looked for."""

        def named(one: Included) -> bool:
            return address in json.dumps(included_json(one, details="accounts", encoding="json", versions=True))

        def hidden(params: list[Any]) -> bool:
            there = self._chain.status(str(params[0]))
            return there is not None and named(there[1])

        def block(truth: Any, _params: list[Any]) -> Any:
            for name in truth.keys() & {"transactions", "signatures"}:
                truth[name] = [one for one in truth[name] if address not in json.dumps(one) and not hidden([one])]
            return truth

        def statuses(truth: Any, params: list[Any]) -> Any:
            value = [None if hidden([one]) else status for one, status in zip(params[0], truth["value"], strict=True)]
            return truth | {"value": value}

        self.lies |= {
            "getBlock": block,
            "getTransaction": lambda truth, params: None if hidden(params) else truth,
            "getSignatureStatuses": statuses,
            "getSignaturesForAddress": lambda truth, _params: [one for one in truth if not hidden([one["signature"]])],
        }

    def be_honest(self) -> None:
        """End every lie and failure, and know the whole chain."""
        self.lies.clear()
        self.failure, self.reach = None, WHOLE

    def invent(self, slot: int, invented: Included) -> None:
        """Show a transaction in a block, which no other node has, in every answer about it."""
        signature = invented.signed.signature
        status = {
            "slot": slot, "confirmations": None, "err": None, "status": {"Ok": None},
            "confirmationStatus": "finalized",
        }  # fmt: skip

        def shown(options: Mapping[str, Any]) -> dict[str, Any]:
            details, encoding = str(options.get("transactionDetails", "full")), str(options.get("encoding", "json"))
            return included_json(invented, details=details, encoding=encoding, versions=True)

        def block(truth: Any, params: list[Any]) -> Any:
            if params[0] != slot:
                return truth
            if "signatures" in truth:
                truth["signatures"].append(signature)
            if "transactions" in truth:
                truth["transactions"].append(shown(params[1]))
            return truth

        def statuses(truth: Any, params: list[Any]) -> Any:
            value = [status if one == signature else true for one, true in zip(params[0], truth["value"], strict=True)]
            return truth | {"value": value}

        def one(truth: Any, params: list[Any]) -> Any:
            return {"slot": slot, "blockTime": 1, **shown(params[1])} if params[0] == signature else truth

        self.lies |= {"getBlock": block, "getSignatureStatuses": statuses, "getTransaction": one}

    def change_transactions(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Let a function change each transaction, in blocks and by its signature."""

        def block(truth: Any, _params: list[Any]) -> Any:
            for one in truth.get("transactions", []):
                change(one)
            return truth

        def one(truth: Any, _params: list[Any]) -> Any:
            if truth is not None:
                change(truth)
            return truth

        self.lies |= {"getBlock": block, "getTransaction": one}

    def alter_amounts(self, factor: int) -> None:
        """Multiply what each transaction moved; the sums still agree."""
        self.change_transactions(lambda one: _multiply(one["meta"], factor))


def _multiply(meta: dict[str, Any], factor: int) -> None:
    changes = [after - before for before, after in zip(meta["preBalances"], meta["postBalances"], strict=True)]
    others = [change * factor for change in changes[1:]]
    moved = [-sum(others) - meta["fee"], *others]
    meta["postBalances"] = [before + change for before, change in zip(meta["preBalances"], moved, strict=True)]
    units_before = {one["accountIndex"]: int(one["uiTokenAmount"]["amount"]) for one in meta["preTokenBalances"]}
    for one in meta["postTokenBalances"]:
        before = units_before.get(one["accountIndex"], 0)
        amount = one["uiTokenAmount"]
        amount["amount"] = str(before + (int(amount["amount"]) - before) * factor)

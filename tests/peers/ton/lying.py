"""A provider between the gateway and a simulated TON chain that lies, fails, lags or forgets. Real HTTP on loopback.

lies[method] is the answer instead: a value, a Raw answer, a Refusal, or a function of the true answer and the
parameters. reach is the part of the chain that it knows at all.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chains.ton import boc, messages
from chains.ton.cells import Cell
from chains.ton.slices import Builder, Slice
from devstack.ton.answers import WHOLE, Fault, answer
from devstack.ton.blocks import BASECHAIN, Ran
from devstack.ton.shapes import transaction_json, unsigned
from devstack.ton.simulator import Simulator
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

Json = dict[str, Any]
Lie = Callable[[Any, Json], object] | object


class LyingTon(JsonRpcNode):
    """A provider that is honest until a test changes it. A context manager."""

    def __init__(self, chain: Simulator, *, key: str = "secret-key") -> None:
        super().__init__({}, key=key)
        self._chain = chain
        self.lies: dict[str, Lie] = {}
        self.reach = WHOLE
        # Instead of any answer at all.
        self.failure: Raw | Refusal | None = None

    def answer(self, request: Mapping[str, Any]) -> Raw:
        reply = self.failure or self._reply(request["method"], request.get("params") or {})
        if isinstance(reply, Raw):
            return reply
        status = reply.code if isinstance(reply, Refusal) else 200
        return Raw(json.dumps(self.envelope(request, reply)).encode(), status=status)

    def envelope(self, request: Mapping[str, Any], answer: object) -> object:
        envelope: Json = {"jsonrpc": "2.0", "id": request.get("id"), "ok": not isinstance(answer, Refusal)}
        if isinstance(answer, Refusal):
            return envelope | {"error": answer.message, "code": answer.code}
        return envelope | {"result": answer}

    def _reply(self, method: str, params: Json) -> Any:
        lie = self.lies.get(method)
        if lie is not None and not callable(lie):
            return lie
        truth = self.truth(method, params)
        return truth if lie is None or isinstance(truth, Refusal) else lie(truth, params)

    def truth(self, method: str, params: Json) -> Any:
        """Return the answer of an honest node that knows as much of the chain."""
        try:
            return copy.deepcopy(answer(self._chain, method, params, self.reach))
        except Fault as fault:
            return Refusal(fault.code, fault.message)

    def lag(self, blocks: int) -> None:
        """Know nothing of the newest blocks of the masterchain, nor of their contents."""
        self.reach = replace(self.reach, behind=blocks)

    def prune(self, first_seqno: int) -> None:
        """Keep no state before a block of the masterchain."""
        self.reach = replace(self.reach, first_seqno=first_seqno)

    def be_honest(self) -> None:
        """End every lie and failure, and know the whole chain."""
        self.lies.clear()
        self.failure, self.reach = None, WHOLE

    def hide(self, *addresses: str) -> None:
        """Show no transaction of these accounts, wherever it is looked for."""
        self._keep_transactions(lambda one: one["account"].lower() not in addresses)

    def cut(self, keep: int = 0) -> None:
        """Show at most this many transactions of a page, as if it had no more."""

        def page(truth: Any, _params: Json) -> Any:
            return truth | {"transactions": truth["transactions"][:keep], "incomplete": False}

        self.lies["getBlockTransactionsExt"] = page

    def leave_out(self, shard: int, seqno: int) -> None:
        """Name the predecessors of a shard's block where a header names that block."""

        def header(truth: Any, _params: Json) -> Any:
            places = {(unsigned(each["shard"]), each["seqno"]): each for each in truth["prev_blocks"]}
            named = places.get((shard, seqno))
            if named:
                missing = {"workchain": BASECHAIN, "shard": named["shard"], "seqno": seqno}
                truth["prev_blocks"] = self.truth("getBlockHeader", missing)["prev_blocks"]
            return truth

        self.lies["getBlockHeader"] = header

    def invent(self, place: tuple[int, int], invented: Ran) -> None:
        """Show a transaction in a shard's block, which no other node has, in every answer about it."""
        shown, address = transaction_json(invented), invented.transaction.address

        def page(truth: Any, params: Json) -> Any:
            if (unsigned(params["shard"]), int(params["seqno"])) == place and params.get("after_hash") is None:
                truth["transactions"].append(shown)
            return truth

        def account(truth: Any, params: Json) -> Any:
            return [shown, *truth] if str(params["address"]).lower() == address else truth

        self.lies |= {"getBlockTransactionsExt": page, "getTransactions": account}

    def change_transactions(self, change: Callable[[Json], object]) -> None:
        """Let a function change each transaction that is shown."""

        def page(truth: Any, _params: Json) -> Any:
            for one in truth["transactions"]:
                change(one)
            return truth

        def account(truth: Any, _params: Json) -> Any:
            for one in truth:
                change(one)
            return truth

        self.lies |= {"getBlockTransactionsExt": page, "getTransactions": account}

    def alter_amounts(self, factor: int) -> None:
        """Multiply the coin and the jettons that each transaction brings: other cells, and so another id."""
        self.change_transactions(lambda one: one.update(altered(one, factor)))

    def _keep_transactions(self, is_kept: Callable[[Json], bool]) -> None:
        def page(truth: Any, _params: Json) -> Any:
            return truth | {"transactions": [one for one in truth["transactions"] if is_kept(one)]}

        self.lies |= {
            "getBlockTransactionsExt": page,
            "getTransactions": lambda truth, _params: [one for one in truth if is_kept(one)],
        }


def altered(shown: Json, factor: int) -> Json:
    """Return a transaction as a liar shows it whose message brings more."""
    cell = boc.read_base64(shown["data"])
    incoming = cell.refs[0].refs[0]
    message = messages.read(incoming)
    if message.kind != "internal":
        return shown
    new = replaced(cell, incoming, _multiplied(incoming, factor))
    identity = shown["transaction_id"] | {"hash": base64.b64encode(new.hash).decode()}
    return shown | {"data": boc.write_base64(new), "transaction_id": identity}


def _multiplied(cell: Cell, factor: int) -> Cell:
    """Return a message whose coin, and the jettons that its body names, are multiplied."""
    parts = Slice(cell)
    changed = Builder().uint(parts.uint(4), 4).address(parts.address()).address(parts.address())
    rest = changed.coins(parts.coins() * factor).cells(parts.rest()).end()
    return _with_jettons(rest, factor)


def _with_jettons(cell: Cell, factor: int) -> Cell:
    body = messages.read(cell).body
    parts = Slice(body)
    if parts.bits < 128 or parts.uint(32) != 0x178D4519:
        return cell
    new = Builder().uint(0x178D4519, 32).uint(parts.uint(64), 64).coins(parts.coins() * factor).cells(parts.rest())
    return replaced(cell, body, new.end())


def replaced(cell: Cell, old: Cell, new: Cell) -> Cell:
    """Return a tree of cells with one of them replaced wherever it is."""
    if cell == old:
        return new
    return Cell(cell.data, cell.bits, tuple(replaced(ref, old, new) for ref in cell.refs), is_exotic=cell.is_exotic)

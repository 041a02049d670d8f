"""Answers the questions of toncenter's interface, second version, over a simulated chain. Called by server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from chains.ton import boc, messages
from chains.ton.cells import CellError
from chains.ton.messages import Message
from core.addresses import ton
from devstack.ton.blocks import MASTERCHAIN, MasterBlock, Ran
from devstack.ton.engine import CONFIG, RefusedError
from devstack.ton.shapes import (
    Json,
    account_json,
    b64,
    block_json,
    master_header_json,
    shard_header_json,
    transaction_json,
    unsigned,
)
from devstack.ton.simulator import Simulator

COUNT: Final = 40
COUNT_MAX: Final = 256
LIMIT: Final = 10
LIMIT_MAX: Final = 100
ACCOUNT_DIGITS: Final = 64


class Fault(Exception):  # noqa: N818  an answer, not a failure of the simulator
    """A node's refusal of a question, as a text with a number like HTTP's."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.message, self.code = message, code


def answer(simulator: Simulator, method: str, asked: Json) -> Any:
    """Return the result of a question. Raises Fault."""
    if method not in METHODS:
        raise Fault("method not found", 404)
    try:
        with simulator.lock:
            return METHODS[method](simulator, asked)
    except (KeyError, TypeError, ValueError, CellError) as error:
        raise Fault(f"failed to parse request: {error}", 422) from error


def masterchain_info(simulator: Simulator, _asked: Json) -> Json:
    """Return the newest block of the masterchain, and the first."""
    first = block_json(simulator.masters[0].id)
    return {
        "@type": "blocks.masterchainInfo",
        "last": block_json(simulator.head.id),
        "state_root_hash": b64(simulator.head.id.hash),
        "init": first | {"shard": "0", "root_hash": simulator.identity},
    }


def shards(simulator: Simulator, asked: Json) -> Json:
    """Return the newest block of each shard that a block of the masterchain names."""
    named = _master(simulator, asked).shards
    return {"@type": "blocks.shards", "shards": [block_json(each) for each in named]}


def block_header(simulator: Simulator, asked: Json) -> Json:
    """Return the header of a block."""
    if int(asked["workchain"]) == MASTERCHAIN:
        return master_header_json(_master(simulator, asked))
    block = simulator.blocks.get((unsigned(asked["shard"]), int(asked["seqno"])))
    if block is None:
        raise _no_block()
    return shard_header_json(block)


def block_transactions(simulator: Simulator, asked: Json) -> Json:
    """Return a page of a block's transactions, after a logical time of an account if the question names one."""
    header = block_header(simulator, asked)
    ran: tuple[Ran, ...] = ()
    if int(asked["workchain"]) != MASTERCHAIN:
        ran = simulator.blocks[unsigned(asked["shard"]), int(asked["seqno"])].ran
    if asked.get("after_hash") is not None:
        after = _account(str(asked["after_hash"])), int(asked["after_lt"])
        ran = tuple(each for each in ran if (each.transaction.address[2:], each.transaction.lt) > after)
    count = min(int(asked.get("count") or COUNT), COUNT_MAX)
    return {
        "@type": "blocks.transactionsExt",
        "id": header["id"],
        "req_count": count,
        "incomplete": len(ran) > count,
        "transactions": [transaction_json(each) for each in ran[:count]],
    }


def address_information(simulator: Simulator, asked: Json) -> Json:
    """Return an account, after the newest block or an older one."""
    master = simulator.head if asked.get("seqno") is None else _master(simulator, asked)
    return account_json(simulator.account(_address(asked), master.id.seqno), master)


def account_transactions(simulator: Simulator, asked: Json) -> list[Json]:
    """Return an account's transactions, the newest first, from one on and down to a logical time."""
    ran = simulator.ran.get(_address(asked), [])
    first, last = asked.get("lt"), int(asked.get("to_lt") or 0)
    kept = [each for each in reversed(ran) if first is None or each.transaction.lt <= int(first)]
    limit = min(int(asked.get("limit") or LIMIT), LIMIT_MAX)
    return [transaction_json(each) for each in kept if each.transaction.lt > last][:limit]


def send(simulator: Simulator, asked: Json) -> Json:
    """Take a message from outside."""
    _broadcast(simulator, asked)
    return {"@type": "ok"}


def send_and_name(simulator: Simulator, asked: Json) -> Json:
    """Take a message from outside, and return its hashes."""
    message = _broadcast(simulator, asked)
    hashes = {"hash": b64(message.cell.hash), "hash_norm": b64(message.normalized_hash)}
    return {"@type": "raw.extMessageInfo", **hashes}


def config(_simulator: Simulator, _asked: Json) -> Json:
    """Return the settings of the chain, as a dictionary."""
    return {"@type": "configInfo", "config": {"@type": "tvm.cell", "bytes": CONFIG.read_text("ascii").strip()}}


METHODS: Final[Mapping[str, Callable[[Simulator, Json], Any]]] = {
    "getMasterchainInfo": masterchain_info,
    "shards": shards,
    "getBlockHeader": block_header,
    "getBlockTransactionsExt": block_transactions,
    "getAddressInformation": address_information,
    "getTransactions": account_transactions,
    "sendBoc": send,
    "sendBocReturnHash": send_and_name,
    "getConfigAll": config,
}


def _master(simulator: Simulator, asked: Json) -> MasterBlock:
    seqno = int(asked["seqno"])
    if not 0 <= seqno < len(simulator.masters):
        raise _no_block()
    return simulator.masters[seqno]


def _no_block() -> Fault:
    return Fault("LITE_SERVER_NOTREADY: block is not applied")


def _address(asked: Json) -> str:
    address = ton.stored(str(asked["address"]))
    if address is None:
        raise ValueError("invalid address")
    return address


def _account(text: str) -> str:
    """Return an account in hexadecimal; nodes take it in that form and in base64."""
    return text.lower() if len(text) == ACCOUNT_DIGITS else base64.b64decode(text, validate=True).hex()


def _broadcast(simulator: Simulator, asked: Json) -> Message:
    cell = boc.read_base64(str(asked["boc"]))
    message = messages.read(cell)
    if message.kind != "in":
        raise ValueError("not an external message")
    try:
        simulator.broadcast(cell)
    except RefusedError as error:
        problem = "cannot apply external message to current state : External message was not accepted"
        raise Fault(f"LITE_SERVER_UNKNOWN: {problem}\n{error}") from error
    return message

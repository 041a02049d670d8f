"""Answers the questions of toncenter's interface, second version, over a simulated chain. Called by server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from chains.ton import boc, dictionaries, messages
from chains.ton.cells import Cell, CellError
from chains.ton.messages import Message
from core.addresses import ton
from devstack.ton import stack
from devstack.ton.blocks import MASTERCHAIN, MasterBlock, Ran, ShardBlock
from devstack.ton.engine import RefusedError
from devstack.ton.shapes import (
    Json,
    account_json,
    b64,
    block_json,
    id_json,
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
NO_METHOD: Final = "method not found"
_CONFIG_BITS: Final = 32


class Fault(Exception):  # noqa: N818  an answer, not a failure of the simulator
    """A node's refusal of a question, as a text with a number like HTTP's."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.message, self.code = message, code


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The part of the chain that one node knows: the whole of it unless it is behind, or has a short history."""

    # The number of the newest blocks of the masterchain that it has not received.
    behind: int = 0
    # States before this block of the masterchain are gone; blocks and transactions stay.
    first_seqno: int = 0


WHOLE: Final = Reach()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The chain as one node knows it."""

    simulator: Simulator
    reach: Reach

    @property
    def head(self) -> MasterBlock:
        """Return the newest block of the masterchain."""
        masters = self.simulator.masters
        return masters[max(0, len(masters) - 1 - self.reach.behind)]

    def master(self, asked: Json) -> MasterBlock:
        """Return the block of the masterchain that a question names. Raises Fault."""
        seqno = int(asked["seqno"])
        if not 0 <= seqno <= self.head.id.seqno:
            raise no_block()
        return self.simulator.masters[seqno]

    def master_of_state(self, asked: Json) -> MasterBlock:
        """Return the block after which a question asks for a state: the newest, or one that is named. Raises Fault."""
        if asked.get("seqno") is None:
            return self.head
        master = self.master(asked)
        if master.id.seqno < self.reach.first_seqno:
            raise Fault("LITE_SERVER_NOTREADY: state is already pruned")
        return master

    def block(self, asked: Json) -> ShardBlock:
        """Return the block of a shard that a question names. Raises Fault."""
        block = self.simulator.blocks.get((unsigned(asked["shard"]), int(asked["seqno"])))
        if block is None or block.master_seqno >= self.head.id.seqno:
            raise no_block()
        return block

    def ran(self, address: str) -> list[Ran]:
        """Return an account's transactions, the newest first."""
        newest, seqnos = self.head.id.seqno, self.simulator.seqnos
        ran = reversed(self.simulator.ran.get(address, ()))
        return [each for each in ran if seqnos[each.transaction.hash] <= newest]


def answer(simulator: Simulator, method: str, asked: Json, reach: Reach = WHOLE) -> Any:
    """Return the result of a question to a node that knows this part of the chain. Raises Fault."""
    if method in CONTROLS:
        return _control(simulator, method, asked)
    if method not in METHODS:
        raise Fault(NO_METHOD, 404)
    try:
        with simulator.lock:
            return METHODS[method](View(simulator=simulator, reach=reach), asked)
    except (KeyError, TypeError, ValueError, CellError) as error:
        raise Fault(f"failed to parse request: {error}", 422) from error


def masterchain_info(view: View, _asked: Json) -> Json:
    """Return the newest block of the masterchain, and the first."""
    first = block_json(view.simulator.masters[0].id)
    return {
        "@type": "blocks.masterchainInfo",
        "last": block_json(view.head.id),
        "state_root_hash": b64(view.head.id.hash),
        "init": first | {"shard": "0", "root_hash": view.simulator.identity},
    }


def shards(view: View, asked: Json) -> Json:
    """Return the newest block of each shard that a block of the masterchain names."""
    return {"@type": "blocks.shards", "shards": [block_json(each) for each in view.master(asked).shards]}


def block_header(view: View, asked: Json) -> Json:
    """Return the header of a block."""
    if int(asked["workchain"]) == MASTERCHAIN:
        return master_header_json(view.master(asked))
    return shard_header_json(view.block(asked))


def block_transactions(view: View, asked: Json) -> Json:
    """Return a page of a block's transactions, after a logical time of an account if the question names one."""
    is_master = int(asked["workchain"]) == MASTERCHAIN
    identity = view.master(asked).id if is_master else view.block(asked).id
    ran = () if is_master else view.block(asked).ran
    if asked.get("after_hash") is not None:
        after = _account(str(asked["after_hash"])), int(asked["after_lt"])
        ran = tuple(each for each in ran if (each.transaction.address[2:], each.transaction.lt) > after)
    count = min(int(asked.get("count") or COUNT), COUNT_MAX)
    return {
        "@type": "blocks.transactionsExt",
        "id": block_json(identity),
        "req_count": count,
        "incomplete": len(ran) > count,
        "transactions": [transaction_json(each) for each in ran[:count]],
    }


def address_information(view: View, asked: Json) -> Json:
    """Return an account, after the newest block or an older one."""
    master = view.master_of_state(asked)
    return account_json(view.simulator.account(_address(asked), master.id.seqno), master)


def account_transactions(view: View, asked: Json) -> list[Json]:
    """Return an account's transactions, the newest first, from one on and down to a logical time."""
    first, last = asked.get("lt"), int(asked.get("to_lt") or 0)
    kept = [each for each in view.ran(_address(asked)) if first is None or each.transaction.lt <= int(first)]
    limit = min(int(asked.get("limit") or LIMIT), LIMIT_MAX)
    return [transaction_json(each) for each in kept if each.transaction.lt > last][:limit]


def run_get_method(view: View, asked: Json) -> Json:
    """Run a get method of a contract, after the newest block or an older one."""
    master, address = view.master_of_state(asked), _address(asked)
    values = stack.write(asked.get("stack") or [])
    done = view.simulator.ask(address, str(asked["method"]), values, master.id.seqno)
    account = view.simulator.account(address, master.id.seqno)
    return {
        "@type": "smc.runResult",
        "gas_used": done.gas,
        "stack": stack.read(boc.read_base64(done.stack)) if done.stack else [],
        "exit_code": done.exit_code,
        "block_id": block_json(master.id),
        "last_transaction_id": id_json(account.last_lt, account.last_hash),
    }


def send(view: View, asked: Json) -> Json:
    """Take a message from outside."""
    _broadcast(view.simulator, asked)
    return {"@type": "ok"}


def send_and_name(view: View, asked: Json) -> Json:
    """Take a message from outside, and return its hashes."""
    message = _broadcast(view.simulator, asked)
    hashes = {"hash": b64(message.cell.hash), "hash_norm": b64(message.normalized_hash)}
    return {"@type": "raw.extMessageInfo", **hashes}


def config(view: View, _asked: Json) -> Json:
    """Return the settings of the chain, as a dictionary."""
    return _config_json(view.simulator.config)


def config_param(view: View, asked: Json) -> Json:
    """Return one setting of the chain."""
    number = int(asked["config_id"])
    entries = dictionaries.read(view.simulator.config, _CONFIG_BITS, entries_max=COUNT_MAX)
    value = next((entry.value.ref() for entry in entries if entry.key == number), None)
    if value is None:
        raise Fault(f"LITE_SERVER_UNKNOWN: there is no setting {number}")
    return _config_json(value)


METHODS: Final[Mapping[str, Callable[[View, Json], Any]]] = {
    "getMasterchainInfo": masterchain_info,
    "shards": shards,
    "getBlockHeader": block_header,
    "getBlockTransactionsExt": block_transactions,
    "getAddressInformation": address_information,
    "getTransactions": account_transactions,
    "sendBoc": send,
    "sendBocReturnHash": send_and_name,
    "getConfigAll": config,
    "getConfigParam": config_param,
    "runGetMethod": run_get_method,
}


def _mine(simulator: Simulator, asked: Json) -> Json:
    return {"seqno": simulator.mine(int(asked.get("count") or 1))}


def _advance(simulator: Simulator, asked: Json) -> Json:
    """Move the chain's clock to a time and make a block there."""
    simulator.advance(max(0, int(asked["to_s"]) - simulator.now()))
    return {"seqno": simulator.mine()}


def _act(simulator: Simulator, asked: Json) -> Json:
    simulator.act(str(asked["act"]), asked["arguments"])
    return {"@type": "ok"}


# Methods that no real node has.
CONTROLS: Final[Mapping[str, Callable[[Simulator, Json], Any]]] = {
    "developmentMine": _mine,
    "developmentAdvance": _advance,
    "developmentAct": _act,
}


def no_block() -> Fault:
    """Return the refusal of a question about a block that a node does not know."""
    return Fault("LITE_SERVER_NOTREADY: block is not applied")


def _control(simulator: Simulator, method: str, asked: Json) -> Any:
    try:
        return CONTROLS[method](simulator, asked)
    except (LookupError, ValueError, TypeError) as error:
        raise Fault(f"{type(error).__name__}: {error}") from error


def _config_json(cell: Cell) -> Json:
    return {"@type": "configInfo", "config": {"@type": "tvm.cell", "bytes": boc.write_base64(cell)}}


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

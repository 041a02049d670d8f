"""Routes the paths of a node's HTTP interface, and a development chain's own ones, to functions. Called by server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from devstack.tron import calls, queries
from devstack.tron.queries import View
from devstack.tron.shapes import Json
from devstack.tron.simulator import Simulator
from devstack.tron.wire import MalformedError

Answer = Callable[[View, Json], Any]

# The paths that a solidity node has as well.
_BOTH: Final[Mapping[str, Answer]] = {
    "getnowblock": queries.now_block,
    "getblockbynum": queries.block_by_number,
    "getblock": queries.block_by,
    "getblockbylimitnext": queries.block_range,
    "gettransactioninfobyblocknum": queries.infos_by_number,
    "gettransactionbyid": queries.transaction,
    "gettransactioninfobyid": queries.transaction_info,
    "getnodeinfo": queries.node_info,
    "getaccount": queries.account,
    "triggerconstantcontract": calls.constant_call,
    "estimateenergy": calls.estimate,
}
_FULL: Final[Mapping[str, Answer]] = {
    "getaccountresource": queries.account_resource,
    "getchainparameters": queries.chain_parameters,
    "getcontract": queries.contract,
    "triggersmartcontract": calls.build_call,
    "createtransaction": calls.build_transfer,
    "broadcasthex": calls.broadcast_hex,
    "broadcasttransaction": calls.broadcast_transaction,
    "getsignweight": calls.sign_weight,
}
PATHS: Final[Mapping[str, tuple[Answer, bool]]] = MappingProxyType(
    {f"wallet/{name}": (answer, False) for name, answer in {**_BOTH, **_FULL}.items()}
    | {f"walletsolidity/{name}": (answer, True) for name, answer in _BOTH.items()}
)


def _mine(simulator: Simulator, asked: Json) -> object:
    return {"height": simulator.mine(int(asked.get("blocks", 1)))}


def _reorg(simulator: Simulator, asked: Json) -> object:
    again = [(str(whole), int(offset)) for whole, offset in asked.get("again", [])]
    simulator.reorg(int(asked["depth"]), again, keeps=bool(asked.get("keeps")))
    return {"height": simulator.head.height}


def _advance(simulator: Simulator, asked: Json) -> object:
    """Move the chain's clock to a time and make a block there."""
    behind_ms = int(asked["to_s"]) * 1000 - simulator.now_ms()
    simulator.advance(max(0, -(-behind_ms // 1000)))
    return {"height": simulator.mine()}


def _forget(simulator: Simulator, _asked: Json) -> object:
    simulator.forget_waiting()
    return {}


def _act(simulator: Simulator, asked: Json) -> object:
    simulator.act(str(asked["act"]), asked.get("arguments", {}))
    return {}


# Methods that no real node has.
CONTROLS: Final[Mapping[str, Callable[[Simulator, Json], object]]] = MappingProxyType(
    {
        "development/mine": _mine,
        "development/reorg": _reorg,
        "development/advance": _advance,
        "development/forget": _forget,
        "development/act": _act,
    }
)


def answer(simulator: Simulator, path: str, asked: Json) -> object:
    """Return a node's answer; None for a path that it does not have."""
    if path not in PATHS and path not in CONTROLS:
        return None
    try:
        with simulator.lock:
            if path in CONTROLS:
                return CONTROLS[path](simulator, asked)
            find, is_solid = PATHS[path]
            is_visible = str(asked.get("visible", False)).lower() == "true"
            view = View(simulator=simulator, is_solid=is_solid, is_visible=is_visible)
            return view.tell(find(view, asked))
    except (MalformedError, LookupError, ValueError, TypeError) as error:
        # java-tron reports every error of a query like this, with status 200.
        return {"Error": f"class {type(error).__name__} : {error}"}

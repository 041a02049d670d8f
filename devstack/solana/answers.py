"""Routes the methods of a node's JSON-RPC, and a development chain's own ones, to functions. Called by server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from devstack.solana import calls, queries
from devstack.solana.faults import NO_METHOD, Fault
from devstack.solana.simulator import Simulator
from devstack.solana.view import WHOLE, Reach, View, view_of

Answer = Callable[[View], Any]

METHODS: Final[Mapping[str, Answer]] = MappingProxyType(
    {
        "getGenesisHash": queries.genesis_hash,
        "getVersion": queries.version,
        "getHealth": queries.health,
        "getSlot": queries.slot,
        "getBlockHeight": queries.height,
        "getLatestBlockhash": queries.latest_blockhash,
        "isBlockhashValid": queries.is_blockhash_valid,
        "getBalance": queries.balance,
        "getAccountInfo": queries.account,
        "getMultipleAccounts": queries.accounts,
        "getMinimumBalanceForRentExemption": queries.rent,
        "getTokenAccountBalance": queries.token_balance,
        "getFirstAvailableBlock": queries.first_block,
        "getBlocks": queries.blocks,
        "getBlock": queries.block,
        "getBlockTime": queries.block_time,
        "getTransaction": queries.transaction,
        "getSignatureStatuses": queries.statuses,
        "getSignaturesForAddress": queries.signatures,
        "getRecentPrioritizationFees": queries.prices,
        "getFeeForMessage": calls.fee,
        "simulateTransaction": calls.simulate,
        "sendTransaction": calls.send,
    }
)


def _mine(simulator: Simulator, blocks: int = 1) -> object:
    return simulator.mine(blocks)


def _skip(simulator: Simulator, slots: int) -> object:
    simulator.skip(slots)
    return simulator.head.slot


def _reorg(simulator: Simulator, depth: int, again: Sequence[Sequence[Any]] = (), keeps: bool = False) -> object:  # noqa: FBT001, FBT002  positions of JSON-RPC
    simulator.reorg(depth, [(str(whole), int(offset)) for whole, offset in again], keeps=keeps)
    return simulator.head.slot


def _advance(simulator: Simulator, to_s: int) -> object:
    """Move the chain's clock to a time and make a block there."""
    simulator.advance(max(0, to_s - int(simulator.now_s())))
    return simulator.mine()


def _forget(simulator: Simulator) -> object:
    simulator.forget_waiting()
    return True


def _prune(simulator: Simulator, slot: int) -> object:
    simulator.prune(slot)
    return True


def _act(simulator: Simulator, name: str, arguments: Mapping[str, Any]) -> object:
    simulator.act(name, arguments)
    return True


# Methods that no real node has.
CONTROLS: Final[Mapping[str, Callable[..., object]]] = MappingProxyType(
    {
        "development_mine": _mine,
        "development_skip": _skip,
        "development_reorg": _reorg,
        "development_advance": _advance,
        "development_forget": _forget,
        "development_prune": _prune,
        "development_act": _act,
    }
)


def answer(simulator: Simulator, method: str, params: Sequence[Any], reach: Reach = WHOLE) -> Any:
    """Return the answer of a node that knows this part of the chain. Raises Fault."""
    with simulator.lock:
        if method in CONTROLS:
            return _control(simulator, method, params)
        if method not in METHODS:
            raise Fault(NO_METHOD, "Method not found")
        return METHODS[method](view_of(simulator, params, reach))


def _control(simulator: Simulator, method: str, params: Sequence[Any]) -> object:
    try:
        return CONTROLS[method](simulator, *params)
    except (LookupError, ValueError, TypeError) as error:
        raise Fault(-32603, f"{type(error).__name__}: {error}") from error

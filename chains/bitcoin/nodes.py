"""Asks bitcoin nodes which chain they serve and how long it is, and builds a network's providers that are asked so."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from chains.base import NotYetError
from chains.bitcoin import wire
from chains.net.json_rpc import JsonRpc, RpcError
from chains.net.node import Dialect
from chains.net.providers import RpcProviders
from core.catalogue.catalogue import Network

# A node answers what it refuses with a status of its own, unless it is new enough to be asked in the newer dialect.
ANSWERS: Final = frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.INTERNAL_SERVER_ERROR})
# A node's error code for a height that its chain has not reached.
OUT_OF_RANGE: Final = -8
# No transaction has it.
NOBODYS: Final = "00" * 32


def hash_at(node: JsonRpc, height: int) -> str:
    """Return the hash of the block that a node has at a height. NotYetError above its head."""
    try:
        return wire.id_of(node.call("getblockhash", [height], str))
    except RpcError as error:
        if error.code == OUT_OF_RANGE:
            raise NotYetError(f"block {height} is not there yet") from None
        raise


def lacking(node: JsonRpc) -> Sequence[str]:
    """Return what a node cannot be asked, a line for each: it still reads the chain, or has thrown old blocks away."""
    state = node.call("getblockchaininfo", [], wire.ChainState)
    faults = []
    if state.initialblockdownload:
        faults.append(f"it has read {state.blocks} of {state.headers} blocks, and tells nothing newer")
    if state.pruned:
        faults.append(f"it has no block below {state.pruneheight}: older ones cannot be read again, nor proved by it")
    try:
        node.call("gettxspendingprevout", [[{"txid": NOBODYS, "vout": 0}]], list[msgspec.Raw])
    except RpcError:
        faults.append("it cannot say what spends a coin in its pool: by its word nothing is signed after a restore")
    return faults


def _open(url: str, timeout_s: float) -> JsonRpc:
    return JsonRpc(url, timeout_s=timeout_s, answers=ANSWERS)


def _identity(node: JsonRpc) -> str:
    return hash_at(node, 0)


def _head(node: JsonRpc) -> int:
    return node.call("getblockcount", [], wire.Height)


DIALECT: Final = Dialect(open=_open, identify=_identity, head=_head)


def bitcoin_providers(network: Network, urls: Sequence[str], *, timeout_s: float) -> RpcProviders:
    """Return the providers of a network of bitcoin, which are believed once they name its first block."""
    return RpcProviders(network, urls, DIALECT, identity=network.chain_identity, timeout_s=timeout_s)

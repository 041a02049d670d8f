"""Asks Solana's nodes for their chain, its blocks and its holes, and builds a network's providers that are asked so.

Everything is asked as of `finalized`. Heights are slots, and some slots have no block. An answer without a block proves
nothing: the slot was skipped, or the node has pruned it, lost it, or not reached it. Only a later block proves a hole,
by the slot of its parent.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

from chains.base import SKIPPED, Block, ContradictionError, NotYetError, Skipped
from chains.net.http import RefusedError
from chains.net.json_rpc import JsonRpc, NoResultError, Rpc, RpcError
from chains.net.node import Dialect
from chains.net.providers import RpcProviders
from chains.solana import wire
from core.catalogue.catalogue import Network

H = TypeVar("H", bound=wire.Header)

FINAL: Final = {"commitment": "finalized"}
# A block is refused as a whole if it has a transaction of a higher version than this.
VERSION_MAX: Final = 255
# The form of blocks and transactions.
FORM: Final = {**FINAL, "encoding": "json", "maxSupportedTransactionVersion": VERSION_MAX, "rewards": False}
# The details of a block: with the ids of its transactions, or without transactions.
SIGNATURES: Final = "signatures"
NO_TRANSACTIONS: Final = "none"
# The codes of a node without a slot's block: pruned, not available, skipped or lost, the same in the long-term store,
# and of unknown status.
LACKED: Final = frozenset({-32001, -32004, -32007, -32009, -32014})
# The code of a node that does not know a transaction's version, and of one that keeps no history.
UNKNOWN_VERSION: Final = -32015
NO_HISTORY: Final = -32011
NO_METHOD: Final = -32601
# The slots that are first searched for the next block, and the highest number that a node lists at once.
SPAN: Final = 64
SPAN_MAX: Final = 500_000
SPAN_FACTOR: Final = 8
# Searches for the next block: over some 800,000 slots, almost two days.
SEARCHES_MAX: Final = 6


class LackedError(RefusedError):
    """The node lacks the block of a slot, which the chain may have."""


def lacked(slot: int) -> LackedError:
    """Return the error for a slot whose block a node lacks."""
    return LackedError(f"a node lacks block {slot}, or the chain skipped it: no later block shows which")


def head(node: Rpc) -> int:
    """Return a node's newest final slot."""
    return node.call("getSlot", [FINAL], wire.Slot)


def header(node: Rpc, slot: int) -> Block:
    """Return the header of a slot's block. Raises LackedError."""
    return wire.block(whole(node, slot, wire.Header, details=NO_TRANSACTIONS), slot)


def whole(node: Rpc, slot: int, kind: type[H], *, details: str) -> H:
    """Return the block of a slot with some of its details. Raises LackedError."""
    try:
        return node.call("getBlock", [slot, {**FORM, "transactionDetails": details}], kind)
    except NoResultError:
        raise lacked(slot) from None
    except RpcError as error:
        if error.code in LACKED:
            raise lacked(slot) from None
        raise


def block_at(node: Rpc, slot: int) -> Block | Skipped:
    """Return the header at a slot, or SKIPPED. Raises NotYetError, and LackedError if the chain has a block there."""
    try:
        return header(node, slot)
    except LackedError:
        return hole(node, slot)


def hole(node: Rpc, slot: int) -> Skipped:
    """Return SKIPPED if a later block's parent is below a slot.

    Raises NotYetError if the node has no later block, and LackedError if the chain has a block there.
    """
    newest = head(node)
    if newest <= slot:
        raise NotYetError(f"block {slot} is not there yet")
    later = slots_above(node, slot, newest)
    if not later:
        raise lacked(slot)
    parent = header(node, later[0]).parent_height
    if parent >= slot:
        raise lacked(parent)
    return SKIPPED


def is_first(node: Rpc, slot: int) -> bool:
    """Return True if a slot's block is the first of its chain, upon nothing but the hash that names the chain."""
    return whole(node, slot, wire.Header, details=NO_TRANSACTIONS).previous_blockhash == _identity(node)


def slots_above(node: Rpc, slot: int, last: int) -> Sequence[int]:
    """Return the slots of the next blocks above a slot, up to the last; empty without any.

    Raises LackedError if the node lists none for far too long.
    """
    first, span = slot + 1, SPAN
    for _ in range(SEARCHES_MAX):
        if first > last:
            return ()
        until = min(last, first + span - 1)
        if slots := _listed(node, first, until):
            return slots
        first, span = until + 1, min(SPAN_FACTOR * span, SPAN_MAX)
    if first > last:
        return ()
    raise LackedError(f"a node lists no block in the {first - slot - 1} slots above {slot}")


def _listed(node: Rpc, first: int, last: int) -> list[int]:
    slots = node.call("getBlocks", [first, last, FINAL], list[wire.Slot])
    bounds = [first - 1, *slots, last + 1]
    if any(one >= other for one, other in pairwise(bounds)):
        raise ContradictionError(f"a list of other blocks than those from {first} to {last}")
    return slots


def txids(node: Rpc, block: Block) -> frozenset[str]:
    """Return the transactions of a block on one node. Raises NotYetError if it has another block, or none."""
    try:
        there = whole(node, block.height, wire.SignedBlock, details=SIGNATURES)
    except LackedError:
        raise NotYetError(f"no block {block.height}") from None
    if there.blockhash != block.hash:
        raise NotYetError(f"another block than {block.hash}")
    return frozenset(there.signatures)


def _open(url: str, timeout_s: float) -> JsonRpc:
    return JsonRpc(url, timeout_s=timeout_s)


def _identity(node: Rpc) -> str:
    return node.call("getGenesisHash", [], str)


DIALECT: Final = Dialect(open=_open, identify=_identity, head=head)


def solana_providers(network: Network, urls: Sequence[str], *, timeout_s: float) -> RpcProviders:
    """Return the providers of a Solana network, which are believed once they name its first block's hash."""
    return RpcProviders(network, urls, DIALECT, identity=network.chain_identity, timeout_s=timeout_s)

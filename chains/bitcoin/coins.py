"""Asks nodes for single coins and transactions, without a transaction index. Called by the reader.

Nodes report unspent coins only at their tip. So all questions of a snapshot have to fall on one tip, or are repeated.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from chains.base import NotYetError, Place, ProviderError, Recorded, Snapshot
from chains.bitcoin import wire
from chains.bitcoin.nodes import hash_at
from chains.bitcoin.scripts import script_of
from chains.bitcoin.transactions import Tx, read_hex
from chains.net.json_rpc import BATCH_MAX, JsonRpc, RpcError

# Attempts to read a snapshot while new blocks come in between.
ROUNDS: Final = 4
# A node's error code for a transaction that it lacks, or that is not in the named block.
UNKNOWN: Final = -5

Outpoint = tuple[str, int]
Shown = tuple[Outpoint, wire.Unspent | None]


def snapshot(node: JsonRpc, places: Sequence[Place]) -> Snapshot:
    """Return the unspent ones of the places' coins, at one tip. Raises ChainError."""
    for _ in range(ROUNDS):
        tip = wire.id_of(node.call("getbestblockhash", [], str))
        shown = dict(_shown(node, [coin for place in places for coin in place.coins]))
        is_steady = all(unspent is None or unspent.bestblock == tip for unspent in shown.values())
        if is_steady and node.call("getbestblockhash", [], str) == tip:
            return Snapshot(
                height=height_of(node, tip),
                block_hash=tip,
                units=tuple(_balance_of(place, shown) for place in places),
            )
    raise ProviderError("blocks come faster than a node tells what is there")


def is_same(node: JsonRpc, recorded: Recorded, chain: str) -> bool:
    """Return True if a node confirms a recorded deposit. Raises ProviderError if it cannot answer."""
    if hash_at(node, recorded.height) != recorded.block_hash:
        return False
    try:
        tx = transaction(node, recorded.txid, recorded.block_hash)
    except RpcError as error:
        if error.code == UNKNOWN:
            return False
        raise
    place = int(recorded.ordinal)
    if place >= len(tx.outputs):
        return False
    output = tx.outputs[place]
    return output.units == recorded.units and output.script == script_of(recorded.recipient, chain)


def transaction(node: JsonRpc, txid: str, block: str) -> Tx:
    """Return a transaction as a node shows it in a block. The bytes prove its id, but not that it is in the block."""
    tx = read_hex(node.call("getrawtransaction", [txid, 0, block], str))
    if tx.txid != txid:
        raise ProviderError("another transaction than the one asked for")
    return tx


def locate(node: JsonRpc, txid: str) -> int | None:
    """Return the height of a transaction; None if none of its first BATCH_MAX outputs is unspent.

    Without a transaction index a node knows a transaction only by its unspent outputs.
    """
    for _, coin in _shown(node, [(txid, vout) for vout in range(BATCH_MAX)]):
        if coin is not None:
            return height_of(node, coin.bestblock) - coin.confirmations + 1
    return None


def height_of(node: JsonRpc, block: str) -> int:
    """Return the height of a block of the chain. Raises NotYetError if it was replaced meanwhile."""
    header = node.call("getblockheader", [wire.id_of(block), True], wire.HeaderPlace)
    if header.confirmations < 1:
        raise NotYetError(f"block {block} stands no longer")
    return header.height


def _shown(node: JsonRpc, coins: Sequence[Outpoint]) -> Iterator[Shown]:
    """Yield each coin with its unspent output, or None if it is spent; the pool does not count. ChainError."""
    for start in range(0, len(coins), BATCH_MAX):
        part = coins[start : start + BATCH_MAX]
        answers = node.batch("gettxout", [[txid, vout, False] for txid, vout in part], wire.Unspent)
        for coin, answer in zip(part, answers, strict=True):
            if isinstance(answer, RpcError):
                raise answer
            yield coin, answer


def _balance_of(place: Place, shown: dict[Outpoint, wire.Unspent | None]) -> int:
    """Return the sum of a place's unspent coins, at any of our addresses: these count as one place."""
    left = (shown[coin] for coin in place.coins)
    return sum(wire.units_of(unspent.value) for unspent in left if unspent is not None)

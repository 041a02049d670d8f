"""Asks nodes for single coins and transactions, without an index of theirs. Called by the reader.

Nodes tell of their tip alone what is unspent. So whatever is asked of one place is asked at one tip, or again.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from chains.base import NotYetError, Place, ProviderError, Recorded, Snapshot
from chains.bitcoin import wire
from chains.bitcoin.nodes import hash_at
from chains.bitcoin.scripts import script_of
from chains.bitcoin.transactions import Tx, read_hex
from chains.net.json_rpc import BATCH_MAX, JsonRpc, RpcError

# So often the same is asked again while blocks come in between.
ROUNDS: Final = 4
# What a node answers where it has no such transaction, or not there.
UNKNOWN: Final = -5

Outpoint = tuple[str, int]
Shown = tuple[Outpoint, wire.Unspent | None]


def snapshot(node: JsonRpc, places: Sequence[Place]) -> Snapshot:
    """Return what is unspent of the coins that should lie at some places, at one tip. Raises ProviderError."""
    for _ in range(ROUNDS):
        tip = wire.id_of(node.call("getbestblockhash", [], str))
        shown = dict(_shown(node, [coin for place in places for coin in place.coins]))
        is_steady = all(found is None or found.bestblock == tip for found in shown.values())
        if is_steady and node.call("getbestblockhash", [], str) == tip:
            return Snapshot(
                height=height_of(node, tip),
                block_hash=tip,
                units=tuple(_held(place, shown) for place in places),
            )
    raise ProviderError("blocks come faster than a node tells what is there")


def is_same(node: JsonRpc, recorded: Recorded, chain: str) -> bool:
    """Return whether a node tells the same of a deposit. Raises ProviderError if it cannot tell at all."""
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
    """Return a transaction as a node shows it in a block; the bytes prove the id, not the place."""
    found = read_hex(node.call("getrawtransaction", [txid, 0, block], str))
    if found.txid != txid:
        raise ProviderError("another transaction than the one asked for")
    return found


def locate(node: JsonRpc, txid: str) -> int | None:
    """Return the height at which a transaction stands; None if no output of it that is looked at is unspent.

    Without an index of transactions a node knows one by its unspent outputs alone, of which the first are asked for.
    """
    for _, found in _shown(node, [(txid, vout) for vout in range(BATCH_MAX)]):
        if found is not None:
            return height_of(node, found.bestblock) - found.confirmations + 1
    return None


def height_of(node: JsonRpc, block: str) -> int:
    """Return the height of a block of the chain. NotYetError for one that was replaced meanwhile."""
    found = node.call("getblockheader", [wire.id_of(block), True], wire.HeaderPlace)
    if found.confirmations < 1:
        raise NotYetError(f"block {block} stands no longer")
    return found.height


def _shown(node: JsonRpc, coins: Sequence[Outpoint]) -> Iterator[Shown]:
    """Tell of each coin whether it is unspent, whatever waits in the pool. Raises ProviderError."""
    for start in range(0, len(coins), BATCH_MAX):
        part = coins[start : start + BATCH_MAX]
        told = node.batch("gettxout", [[txid, vout, False] for txid, vout in part], wire.Unspent)
        for coin, found in zip(part, told, strict=True):
            if isinstance(found, RpcError):
                raise found
            yield coin, found


def _held(place: Place, shown: dict[Outpoint, wire.Unspent | None]) -> int:
    """Return what is left of a place's coins, wherever they lie: our addresses are one place."""
    left = (shown[coin] for coin in place.coins)
    return sum(wire.units_of(found.value) for found in left if found is not None)

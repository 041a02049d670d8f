"""Finds a transaction in the block of a height, which proves its contents. Called by chains.bitcoin.spends.fate.

A hash always names the same block: once a block was read, each node is only asked for the hash at that height.
Nodes that are asked for the same block at once read it once each.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from chains.bitcoin.block import ProvedBlock, outpoints
from chains.bitcoin.blocks import Blocks
from chains.bitcoin.nodes import hash_at
from chains.bitcoin.scripts import key_hash_address
from chains.bitcoin.transactions import id_bytes
from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Network
from core.catalogue.families import bitcoin_parameters

# Of what is remembered; spends are followed for as many blocks as the network matures in.
KEPT_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Included:
    """A transaction in its block: the coins that it spends, and those of its outputs that pay a key's hash."""

    spent: tuple[tuple[str, int], ...]
    # As (address, units).
    paid: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """Which block one node has at a height, and what that holds of a transaction."""

    block_hash: str
    tx: Included | None


class Inclusions:
    """Looks into the blocks of one network. Threads may race on what is kept; the worst is one block read twice."""

    def __init__(self, network: Network) -> None:
        self._chain = bitcoin_parameters(network).chain
        self._blocks = Blocks(network)
        self._kept: OrderedDict[tuple[str, str], Included | None] = OrderedDict()

    def find(self, node: JsonRpc, txid: str, height: int) -> Inclusion:
        """Return what a node's chain holds at a height. Raises NotYetError above its head, ChainError."""
        place = hash_at(node, height), txid
        with suppress(KeyError):
            return Inclusion(block_hash=place[0], tx=self._kept[place])
        proved = self._blocks.proved(node, height)
        included = self._kept[proved.block.hash, txid] = self._in(proved, txid)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return Inclusion(block_hash=proved.block.hash, tx=included)

    def _in(self, block: ProvedBlock, txid: str) -> Included | None:
        digest = id_bytes(txid)
        if digest not in block.ids:
            return None
        place = block.ids.index(digest)
        return Included(
            spent=tuple(coin for coin, _ in outpoints([each for each in block.spent if each[1] == place])),
            paid=tuple(
                (key_hash_address(each.script, self._chain), each.units) for each in block.paid if each.place == place
            ),
        )

"""Fetches headers and blocks from one node, and checks their work against their parents'. Called by the reader.

A parent's target is asked for once and kept: its hash proves it, whichever node returned it.
"""

from collections import OrderedDict
from typing import Final

from chains.base import Block, ProviderError
from chains.bitcoin.block import ProvedBlock, read_block
from chains.bitcoin.headers import RULES, Header, check_follows, is_first, read_header
from chains.bitcoin.nodes import hash_at
from chains.bitcoin.transactions import unhexed
from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Network
from core.catalogue.families import bitcoin_parameters

# The number of blocks whose target is kept.
FIGURES_KEPT: Final = 4096


class Blocks:
    """The blocks of one network. A race between threads costs at most a superfluous question."""

    def __init__(self, network: Network) -> None:
        self._identity = network.chain_identity
        self._rules = RULES[bitcoin_parameters(network).chain]
        self._bits: OrderedDict[str, int] = OrderedDict()

    def header(self, node: JsonRpc, height: int) -> Block:
        """Return a node's header at a height. Raises NotYetError above its head."""
        header = self._header(node, hash_at(node, height))
        self._check(node, header, height)
        return header.at(height)

    def proved(self, node: JsonRpc, height: int) -> ProvedBlock:
        """Return a node's whole block at a height. Raises NotYetError above its head."""
        wanted = hash_at(node, height)
        block = read_block(unhexed(node.call("getblock", [wanted, 0], str)), wanted, height, self._rules)
        self._check(node, block.header, height)
        return block

    def _check(self, node: JsonRpc, header: Header, height: int) -> None:
        """Refuse a block that does not follow its parent. Raises ProviderError."""
        if is_first(header) != (height == 0) or (height == 0 and header.hash != self._identity):
            raise ProviderError(f"block {height} stands where it cannot")
        if height:
            check_follows(header, height, self._bits_of(node, header.parent_hash), self._rules)
        self._keep(header)

    def _bits_of(self, node: JsonRpc, wanted: str) -> int:
        bits = self._bits.get(wanted)
        return self._keep(self._header(node, wanted)) if bits is None else bits

    def _header(self, node: JsonRpc, wanted: str) -> Header:
        return read_header(unhexed(node.call("getblockheader", [wanted, False], str)), wanted, self._rules)

    def _keep(self, header: Header) -> int:
        self._bits[header.hash] = header.bits
        while len(self._bits) > FIGURES_KEPT:
            self._bits.popitem(last=False)
        return header.bits

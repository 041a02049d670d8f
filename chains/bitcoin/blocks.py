"""Fetches headers and blocks from one node, each proved to stand upon its parent's work. Called by the reader.

The figure of a parent is asked for once and kept: it is the hash's own, whoever told it.
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

# Of so many blocks the work's figure is kept.
FIGURES_KEPT: Final = 4096


class Blocks:
    """The blocks of one network. Threads may race on what is kept; the worst is one question too many."""

    def __init__(self, network: Network) -> None:
        self._identity = network.chain_identity
        self._rules = RULES[bitcoin_parameters(network).chain]
        self._bits: OrderedDict[str, int] = OrderedDict()

    def header(self, node: JsonRpc, height: int) -> Block:
        """Return the header that a node has at a height. NotYetError above its head."""
        header = self._header(node, hash_at(node, height))
        self._check(node, header, height)
        return header.at(height)

    def proved(self, node: JsonRpc, height: int) -> ProvedBlock:
        """Return the block that a node has at a height, whole. NotYetError above its head."""
        wanted = hash_at(node, height)
        found = read_block(unhexed(node.call("getblock", [wanted, 0], str)), wanted, height, self._rules)
        self._check(node, found.header, height)
        return found

    def _check(self, node: JsonRpc, header: Header, height: int) -> None:
        """Refuse a block that does not follow its parent. Raises ProviderError."""
        if is_first(header) != (height == 0) or (height == 0 and header.hash != self._identity):
            raise ProviderError(f"block {height} stands where it cannot")
        if height:
            check_follows(header, height, self._bits_of(node, header.parent_hash), self._rules)
        self._keep(header)

    def _bits_of(self, node: JsonRpc, wanted: str) -> int:
        found = self._bits.get(wanted)
        return self._keep(self._header(node, wanted)) if found is None else found

    def _header(self, node: JsonRpc, wanted: str) -> Header:
        return read_header(unhexed(node.call("getblockheader", [wanted, False], str)), wanted, self._rules)

    def _keep(self, header: Header) -> int:
        self._bits[header.hash] = header.bits
        while len(self._bits) > FIGURES_KEPT:
            self._bits.popitem(last=False)
        return header.bits

"""Asks TRON's nodes which chain they serve and how long it is, and builds a network's providers that are asked so."""

from collections.abc import Sequence
from typing import Final

from chains.base import Block
from chains.net.node import Dialect
from chains.net.providers import Providers
from chains.net.rest import RestNode
from chains.tron import wire
from core.catalogue.catalogue import Network

TronProviders = Providers[RestNode]


def _open(url: str, timeout_s: float) -> RestNode:
    return RestNode(url, timeout_s=timeout_s)


def _identity(node: RestNode) -> str:
    return header(node, 0).id


def _head(node: RestNode) -> int:
    return wire.newest(node.ask("wallet/getnowblock", {}, wire.Header)).height


def header(node: RestNode, height: int) -> wire.Header:
    """Return a block without its transactions; without an id where the node has none."""
    return node.ask("wallet/getblockbynum", {"num": height}, wire.Header)


def solid(node: RestNode) -> Block:
    """Return the newest block that a node calls irreversible."""
    return wire.newest(node.ask("walletsolidity/getnowblock", {}, wire.Header))


DIALECT: Final = Dialect(open=_open, identify=_identity, head=_head)


def tron_providers(network: Network, urls: Sequence[str], *, timeout_s: float) -> TronProviders:
    """Return the providers of a TRON network, which are believed once they name its first block."""
    return Providers(network, urls, DIALECT, identity=network.chain_identity, timeout_s=timeout_s)

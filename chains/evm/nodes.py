"""Asks EVM nodes which chain they serve and how long it is, and builds a network's providers that are asked so."""

from collections.abc import Sequence
from typing import Final

from chains.evm.wire import height, quantity
from chains.net.json_rpc import JsonRpc
from chains.net.node import Dialect
from chains.net.providers import RpcProviders
from core.catalogue.catalogue import Network


def _identity(node: JsonRpc) -> str:
    return str(quantity(node.call("eth_chainId", [], str)))


def _head(node: JsonRpc) -> int:
    return height(node.call("eth_blockNumber", [], str))


def _open(url: str, timeout_s: float) -> JsonRpc:
    return JsonRpc(url, timeout_s=timeout_s)


DIALECT: Final = Dialect(open=_open, identify=_identity, head=_head)


def evm_providers(network: Network, urls: Sequence[str], *, timeout_s: float) -> RpcProviders:
    """Return the providers of an EVM network, which are believed once they name its chain id."""
    return RpcProviders(network, urls, DIALECT, identity=network.chain_identity, timeout_s=timeout_s)

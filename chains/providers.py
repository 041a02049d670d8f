"""The nodes of one network: asks the preferred one, then the next. Used by the EVM adapter.

A node is believed only after it has named the right chain, again whenever it had been lost.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import structlog

from chains.base import ProviderError, WrongChainError
from chains.evm_wire import quantity
from chains.rpc import JsonRpc, RpcError
from core.catalogue import Network

T = TypeVar("T")
log = structlog.get_logger()

# How long a node that failed is asked last, so that a dead one does not cost a timeout on every call.
REST_S: Final = 30.0


class _Node:
    """A node and what we know of it. Threads may race on the marks; the worst is one question too many."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self.rpc = JsonRpc(url, timeout_s=timeout_s)
        self.is_verified = False
        self.rests_until = 0.0


class Providers:
    """A network's nodes in order of preference. Safe to share between threads."""

    def __init__(self, network: Network, urls: Sequence[str], *, timeout_s: float) -> None:
        if not urls:
            raise ValueError(f"{network.code} has no provider")
        self._network = network
        self._nodes = tuple(_Node(url, timeout_s) for url in urls)

    def call(self, method: str, params: Sequence[object], kind: type[T]) -> T:
        """Return the first node's answer that is one. Raises the last node's ProviderError."""
        return self._first(lambda rpc: rpc.call(method, params, kind))

    def call_or_none(self, method: str, params: Sequence[object], kind: type[T]) -> T | None:
        """Like call, where null is an answer."""
        return self._first(lambda rpc: rpc.call_or_none(method, params, kind))

    def _first(self, question: Callable[[JsonRpc], T]) -> T:
        now = time.monotonic()
        failure: ProviderError | None = None
        # A stable sort: those that rest come last, otherwise the operator's order holds.
        for node in sorted(self._nodes, key=lambda node: node.rests_until > now):
            try:
                return self._ask(node, question)
            except RpcError as error:
                failure = error  # It lives, and refused; another may know more (a block that this one lacks).
            except ProviderError as error:
                failure = error
                node.is_verified = False
                node.rests_until = time.monotonic() + REST_S
                log.warning("provider_failed", network=self._network.code, problem=str(error))
        raise failure or AssertionError("there is at least one node")

    def _ask(self, node: _Node, question: Callable[[JsonRpc], T]) -> T:
        if not node.is_verified:
            chain_id = quantity(node.rpc.call("eth_chainId", [], str))
            if chain_id != self._network.chain_id:
                raise WrongChainError(f"{self._network.code}: a provider serves chain {chain_id}")
            node.is_verified = True
        return question(node.rpc)

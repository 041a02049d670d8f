"""Moves the clock of an EVM development chain. Called by devstack.clock."""

from __future__ import annotations

from typing import Any

from chains.base import ProviderError
from chains.evm.wire import quantity
from chains.net.json_rpc import JsonRpc, RpcError


class EvmClock:
    """The clock of one node; implements devstack.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = JsonRpc(url, timeout_s=timeout_s)

    def check(self) -> None:
        """Check that the node answers."""
        self._node.call("eth_chainId", [], str)

    def advance(self, target_s: int) -> bool:
        """Move the node to a time and mine a block there. Return False for a node without that method."""
        try:
            newest = self._node.call("eth_getBlockByNumber", ["latest", False], dict[str, Any])
            if "timestamp" not in newest:
                raise ProviderError("a block without timestamp")
            behind_s = target_s - quantity(str(newest["timestamp"]))
            self._node.call_or_none("evm_increaseTime", [max(0, behind_s)], object)
            self._node.call_or_none("evm_mine", [], object)
        except RpcError:
            return False
        return True

"""Moves the clock of a Solana development chain. Called by devstack.clock."""

from __future__ import annotations

from typing import Any

from chains.net.json_rpc import JsonRpc
from devstack.solana.queries import DEVELOPMENT


class SolanaClock:
    """The clock of one node; implements devstack.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = JsonRpc(url, timeout_s=timeout_s)

    def check(self) -> None:
        """Check that the node answers."""
        self._node.call("getSlot", [], int)

    def advance(self, target_s: int) -> bool:
        """Move the node to a time and make a block there. Return False for a node without that method."""
        if not str(self._node.call("getVersion", [], dict[str, Any]).get("solana-core")).endswith(DEVELOPMENT):
            return False
        self._node.call("development_advance", [target_s], int)
        return True

"""Moves the clock of a TRON development chain. Called by devstack.clock."""

from __future__ import annotations

import msgspec

from chains.net.rest import RestNode
from devstack.tron.wire import VERSION


class _Config(msgspec.Struct):
    version: str = msgspec.field(default="", name="codeVersion")


class _Info(msgspec.Struct):
    config: _Config = msgspec.field(default_factory=_Config, name="configNodeInfo")


class TronClock:
    """The clock of one node; implements devstack.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = RestNode(url, timeout_s=timeout_s)

    def check(self) -> None:
        """Check that the node answers."""
        self._node.ask("wallet/getnowblock", {}, dict[str, object])

    def advance(self, target_s: int) -> bool:
        """Move the node to a time and make a block there. Return False for a node without that method."""
        if self._node.ask("wallet/getnodeinfo", {}, _Info).config.version != VERSION:
            return False
        self._node.ask("development/advance", {"to_s": target_s}, dict[str, object])
        return True

"""Moves the clock of a TRON development chain. Called by cli.clock."""

from __future__ import annotations

import msgspec

from chains.net.rest import RestNode
from cli.embedded.tron.wire import VERSION


class _Config(msgspec.Struct):
    version: str = msgspec.field(default="", name="codeVersion")


class _Info(msgspec.Struct):
    config: _Config = msgspec.field(default_factory=_Config, name="configNodeInfo")


class TronClock:
    """One node, as cli.embedded.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = RestNode(url, timeout_s=timeout_s)

    def check(self) -> None:
        """See that it answers."""
        self._node.ask("wallet/getnowblock", {}, dict[str, object])

    def advance(self, target_s: int) -> bool:
        """Bring it to a moment and make a block there; False for a node that takes no such orders."""
        if self._node.ask("wallet/getnodeinfo", {}, _Info).config.version != VERSION:
            return False
        self._node.ask("development/advance", {"to_s": target_s}, dict[str, object])
        return True

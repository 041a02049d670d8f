"""Moves the clock of a TON development chain. Called by devstack.clock."""

from __future__ import annotations

from chains.base import ProviderError
from devstack.ton.answers import NO_METHOD
from devstack.ton.client import Toncenter


class TonClock:
    """The clock of one node; implements devstack.chains.ChainClock."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._node = Toncenter(url, timeout_s=timeout_s)

    def check(self) -> None:
        """Check that the node answers."""
        self._node.ask("getMasterchainInfo")

    def advance(self, target_s: int) -> bool:
        """Move the node to a time and make a block there. Return False for a node without that method."""
        self.check()
        try:
            self._node.ask("developmentAdvance", to_s=target_s)
        except ProviderError as error:
            if NO_METHOD not in str(error):
                raise
            return False
        return True

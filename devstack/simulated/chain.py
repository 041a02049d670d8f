"""Equips a simulated chain with a rich buyer, and the hot wallet with coin for its fees. Used by the families' chains.

The coin for fees comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Sequence

from chains.base import ProviderError
from core.catalogue.catalogue import Pair
from devstack.chains import DevelopmentChain
from devstack.simulated.node import SimulatorNode
from devstack.supervise.process import Child
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.treasury import addresses


class SimulatedChain(DevelopmentChain):
    """A chain whose file keeps what it was equipped with."""

    # The coin that the hot wallet is given, in whole coins.
    hot_coins: int

    def __init__(self, node: SimulatorNode, *, pairs: Sequence[Pair]) -> None:
        super().__init__(node.name)
        self.network = node.network
        self.url = node.url
        self.tokens = {pair.currency: pair.contract for pair in pairs if pair.contract is not None}
        self._node = node
        self._pairs = pairs
        self._is_hot_funded = False

    def is_ready(self) -> bool:
        """Return whether the node answers."""
        return self._node.is_ready()

    def tick(self) -> None:
        """Give the hot wallet coin, once the signer has named it."""
        if not self._is_hot_funded:
            with contextlib.suppress(ProviderError, StoreUnavailableError):
                self._is_hot_funded = self._fund_hot()

    @abstractmethod
    def _coin(self, address: str) -> int:
        """Return an address's balance of the network's own coin."""

    def _fund_hot(self) -> bool:
        """Give the hot wallet coin unless it has some; False before the signer has named it and the scan has begun."""
        hot = addresses.address(self.network, "hot")
        if hot is None or cursors.read(self.network) is None:
            return False
        if self._coin(hot) == 0:
            native = next(pair for pair in self._pairs if pair.contract is None)
            self.pay(native, to=hot, units=self.hot_coins * 10**native.decimals)
        return True

    def _spawn(self) -> Child:
        self._is_hot_funded = False
        return self._node.launch()

"""Starts an EVM chain on which the catalogue's tokens exist and the buyer is rich, and the hot wallet has gas.

Made by cli.embedded.stack. The gas comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from cli.embedded.servers.anvil import Anvil
from cli.embedded.story import faucet
from cli.embedded.story.tokens import install_tokens
from cli.embedded.supervise.process import Child
from cli.embedded.supervise.program import Program
from core.catalogue.catalogue import Pair
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.treasury import own_addresses as treasury

COINS: Final = 1_000_000
HOT_COINS: Final = 1_000
WEI: Final = 10**18
TIMEOUT_S: Final = 10.0


class DevChain(Program):
    """Installs tokens and funds once per node, and again if a kill lost the node's last state dump."""

    def __init__(self, node: Anvil, *, pairs: Sequence[Pair], buyer: str) -> None:
        super().__init__(node.name)
        self.network = node.network
        self.url = node.url
        self.tokens = {pair.currency: pair.contract for pair in pairs if pair.contract is not None}
        self._node = node
        self._pairs = pairs
        self._buyer = buyer
        self._equipped = False
        self._is_hot_funded = False

    def is_ready(self) -> bool:
        """Return whether the node answers."""
        return self._node.is_ready()

    def tick(self) -> None:
        """Look after the node, and after a restart see that tokens and coin are there."""
        self._node.tick()
        if not self._equipped:
            with contextlib.suppress(ProviderError):
                self.equip()
        elif not self._is_hot_funded:
            with contextlib.suppress(ProviderError, StoreUnavailableError):
                self._is_hot_funded = self._fund_hot()

    def equip(self) -> None:
        """Install tokens and coin unless the chain has them. Raises ProviderError."""
        rpc = JsonRpc(self.url, timeout_s=TIMEOUT_S)
        if int(rpc.call("eth_getBalance", [self._buyer, "latest"], str), 16) == 0:
            install_tokens(self.url, self._pairs, self._buyer, COINS)
            # Last, because it is what says that all is there.
            rpc.call_or_none("anvil_setBalance", [self._buyer, hex(COINS * WEI)], object)
        self._equipped = True

    def _fund_hot(self) -> bool:
        """Give the hot wallet gas unless it has some; False before the signer has named it and the scan has begun."""
        hot = treasury.address(self.network, "hot")
        if hot is None or cursors.read(self.network) is None:
            return False
        rpc = JsonRpc(self.url, timeout_s=TIMEOUT_S)
        if int(rpc.call("eth_getBalance", [hot, "latest"], str), 16) == 0:
            faucet.give(self.url, hot, HOT_COINS * WEI)
        return True

    def _spawn(self) -> Child:
        self._equipped = self._is_hot_funded = False
        return self._node.launch()

"""Starts an EVM chain with the catalogue's tokens, a rich buyer, and gas for the hot wallet.

Made by devstack.evm.family. The gas comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from chains.base import ProviderError
from chains.evm.spends.tx import send_transfer
from chains.evm.wire import quantity
from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair
from devstack.chains import DevelopmentChain
from devstack.evm import faucet
from devstack.evm.anvil import Anvil
from devstack.evm.buyer import address_of, new_address
from devstack.evm.tokens import install_tokens
from devstack.supervise.process import Child
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.treasury import addresses

COINS: Final = 1_000_000
HOT_COINS: Final = 1_000
WEI: Final = 10**18
TIMEOUT_S: Final = 10.0
# First four bytes of keccak256("balanceOf(address)").
BALANCE_SELECTOR: Final = "0x70a08231"


class EvmChain(DevelopmentChain):
    """An EVM chain. It installs tokens and funds once per node, and again if a kill lost the node's last state."""

    def __init__(self, node: Anvil, *, pairs: Sequence[Pair], buyer_key: str) -> None:
        super().__init__(node.name)
        self.network = node.network
        self.url = node.url
        self.tokens = {pair.currency: pair.contract for pair in pairs if pair.contract is not None}
        self._node = node
        self._pairs = pairs
        self._buyer_key, self._buyer = buyer_key, address_of(buyer_key)
        self._equipped = False
        self._is_hot_funded = False

    def is_ready(self) -> bool:
        """Return whether the node answers."""
        return self._node.is_ready()

    def tick(self) -> None:
        """Look after the node, and after a restart check that tokens and coin are there."""
        self._node.tick()
        if not self._equipped:
            with contextlib.suppress(ProviderError):
                self.equip()
        elif not self._is_hot_funded:
            with contextlib.suppress(ProviderError, StoreUnavailableError):
                self._is_hot_funded = self._fund_hot()

    def equip(self) -> None:
        """Install tokens and coin unless the chain has them. Raises ProviderError."""
        rpc = self._rpc()
        if int(rpc.call("eth_getBalance", [self._buyer, "latest"], str), 16) == 0:
            install_tokens(self.url, self._pairs, self._buyer, COINS)
            # Last: its presence shows that everything is there.
            rpc.call_or_none("anvil_setBalance", [self._buyer, hex(COINS * WEI)], object)
        self._equipped = True

    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send coin or tokens from the buyer."""
        return send_transfer(self._rpc(), self._buyer_key, to=to, units=units, contract=pair.contract)

    def balance(self, pair: Pair, address: str) -> int:
        """Return what an address holds at the newest block."""
        if pair.contract is None:
            return quantity(self._rpc().call("eth_getBalance", [address, "latest"], str))
        data = BALANCE_SELECTOR + address.removeprefix("0x").lower().rjust(64, "0")
        return int(self._rpc().call("eth_call", [{"to": pair.contract, "data": data}, "latest"], str), 16)

    def stranger(self) -> str:
        """Return a new address."""
        return new_address()

    def _rpc(self) -> JsonRpc:
        return JsonRpc(self.url, timeout_s=TIMEOUT_S)

    def _fund_hot(self) -> bool:
        """Give the hot wallet gas unless it has some; False before the signer has named it and the scan has begun."""
        hot = addresses.address(self.network, "hot")
        if hot is None or cursors.read(self.network) is None:
            return False
        rpc = self._rpc()
        if int(rpc.call("eth_getBalance", [hot, "latest"], str), 16) == 0:
            faucet.give(self.url, hot, HOT_COINS * WEI)
        return True

    def _spawn(self) -> Child:
        self._equipped = self._is_hot_funded = False
        return self._node.launch()

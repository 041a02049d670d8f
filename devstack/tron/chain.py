"""Starts a TRON chain with the catalogue's token, a rich buyer, and TRX for the hot wallet.

Made by devstack.tron.family. The TRX comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from chains.base import ProviderError
from chains.net.rest import RestNode
from core.catalogue.catalogue import Pair
from devstack.chains import DevelopmentChain
from devstack.contracts.code import PLAIN
from devstack.supervise.process import Child
from devstack.tron.buyer import Buyer, calldata, new_address
from devstack.tron.node import TronNode
from devstack.tron.wire import raw_of, shown
from models.db.base import StoreUnavailableError
from models.deposits import cursors
from models.treasury import addresses

COINS: Final = 1_000_000
HOT_COINS: Final = 10_000
SUN: Final = 10**6
TIMEOUT_S: Final = 10.0
# The real contract is so busy that a transfer takes over four times the energy of its code.
BUSY_PCT: Final = 340
NOBODY: Final = shown(bytes(20))


class _Account(msgspec.Struct):
    balance: int = 0


class _ConstantResult(msgspec.Struct):
    words: list[str] = msgspec.field(name="constant_result")


class TronChain(DevelopmentChain):
    """A TRON chain. It installs the token and funds once; the chain's file keeps them."""

    def __init__(self, node: TronNode, *, pairs: Sequence[Pair], buyer_key: str) -> None:
        super().__init__(node.name)
        self.network = node.network
        self.url = node.url
        self.tokens = {pair.currency: pair.contract for pair in pairs if pair.contract is not None}
        self._node = node
        self._pairs = pairs
        self._buyer = Buyer(buyer_key)
        self._is_hot_funded = False

    def is_ready(self) -> bool:
        """Return whether the node answers."""
        return self._node.is_ready()

    def tick(self) -> None:
        """Give the hot wallet TRX, once the signer has named it."""
        if not self._is_hot_funded:
            with contextlib.suppress(ProviderError, StoreUnavailableError):
                self._is_hot_funded = self._fund_hot()

    def equip(self) -> None:
        """Install tokens and coin unless the chain has them. Raises ProviderError."""
        if self._coin(self._buyer.address):
            return
        for pair in self._pairs:
            if pair.contract is not None:
                balances = {self._buyer.address: COINS * 10**pair.decimals}
                self._act(
                    "token", address=pair.contract, code=PLAIN, symbol=pair.currency, decimals=pair.decimals,
                    balances=balances, penalty_pct=BUSY_PCT,
                )  # fmt: skip
        # Last: its presence shows that everything is there.
        self._act("coin", address=self._buyer.address, units=COINS * SUN)

    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send coin or tokens from the buyer."""
        return self._buyer.pay(self._rest(), pair, to=to, units=units)

    def balance(self, pair: Pair, address: str) -> int:
        """Return what an address holds at the newest block."""
        if pair.contract is None:
            return self._coin(address)
        question = {
            "owner_address": NOBODY, "contract_address": pair.contract, "visible": True,
            "data": calldata("balanceOf(address)", raw_of(address)).hex(),
        }  # fmt: skip
        (word,) = self._rest().ask("wallet/triggerconstantcontract", question, _ConstantResult).words
        return int(word, 16)

    def stranger(self) -> str:
        """Return a new address."""
        return new_address()

    def _coin(self, address: str) -> int:
        return self._rest().ask("wallet/getaccount", {"address": address, "visible": True}, _Account).balance

    def _act(self, name: str, **arguments: object) -> None:
        self._rest().ask("development/act", {"act": name, "arguments": arguments}, dict[str, object])

    def _rest(self) -> RestNode:
        return RestNode(self.url, timeout_s=TIMEOUT_S)

    def _fund_hot(self) -> bool:
        """Give the hot wallet TRX unless it has some; False before the signer has named it and the scan has begun."""
        hot = addresses.address(self.network, "hot")
        if hot is None or cursors.read(self.network) is None:
            return False
        if self._coin(hot) == 0:
            native = next(pair for pair in self._pairs if pair.contract is None)
            self.pay(native, to=hot, units=HOT_COINS * SUN)
        return True

    def _spawn(self) -> Child:
        self._is_hot_funded = False
        return self._node.launch()

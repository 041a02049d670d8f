"""Starts a TRON chain with the catalogue's token, a rich buyer, and TRX for the hot wallet.

Made by devstack.tron.family. The TRX comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from chains.net.rest import RestNode
from core.catalogue.catalogue import Pair
from devstack.contracts.code import PLAIN
from devstack.simulated.chain import SimulatedChain
from devstack.tron.buyer import Buyer, calldata, new_address
from devstack.tron.node import TronNode
from devstack.tron.wire import raw_of, shown

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


class TronChain(SimulatedChain):
    """A TRON chain. It installs the token and funds once; the chain's file keeps them."""

    hot_coins = HOT_COINS

    def __init__(self, node: TronNode, *, pairs: Sequence[Pair], buyer_key: str) -> None:
        super().__init__(node, pairs=pairs)
        self._buyer = Buyer(buyer_key)

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

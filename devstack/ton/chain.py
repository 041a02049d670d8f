"""Starts a TON chain with USDT, a rich buyer, and coin for the hot wallet. Made by devstack.ton.family.

The coin comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from chains.base import ProviderError
from core.catalogue.catalogue import Pair
from devstack.simulated.chain import SimulatedChain
from devstack.ton import jettons
from devstack.ton.buyer import Buyer, new_address
from devstack.ton.client import Toncenter
from devstack.ton.node import TonNode

COINS: Final = 1_000_000
HOT_COINS: Final = 1_000
TIMEOUT_S: Final = 10.0
TAKEN_LIMIT_S: Final = 30.0
STEP_S: Final = 0.1
BALANCE: Final = "get_wallet_data"


class TonChain(SimulatedChain):
    """A TON chain. USDT is there from the start; it funds the buyer once, and the chain's file keeps that."""

    hot_coins = HOT_COINS

    def __init__(self, node: TonNode, *, pairs: Sequence[Pair], buyer_key: str) -> None:
        super().__init__(node, pairs=pairs)
        self._buyer = Buyer(buyer_key)
        self._paying = threading.Lock()

    def equip(self) -> None:
        """Give the buyer coin and jettons unless it has them. Raises ProviderError."""
        if self._coin(self._buyer.address):
            return
        for pair in self._pairs:
            name = "coin" if pair.contract is None else "jettons"
            self._act(name, address=self._buyer.address, units=COINS * 10**pair.decimals)
        self._ask("developmentMine")

    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send coin or jettons from the buyer, and wait until its wallet has taken the request."""
        # Of two requests with one number the wallet takes only the first.
        with self._paying:
            seqno = self._buyer.seqno(self._ask)
            txid = self._buyer.pay(self._ask, pair, to=to, units=units)
            deadline = time.monotonic() + TAKEN_LIMIT_S
            while self._buyer.seqno(self._ask) == seqno:
                if time.monotonic() > deadline:
                    raise ProviderError(f"{self.network}: no block has the buyer's payment {txid}")
                time.sleep(STEP_S)
            return txid

    def balance(self, pair: Pair, address: str) -> int:
        """Return what an address has after the newest block."""
        if pair.contract is None:
            return self._coin(address)
        answered = self._ask("runGetMethod", address=jettons.wallet(address), method=BALANCE, stack=[])
        return int(answered["stack"][0][1], 16) if answered["exit_code"] == 0 else 0

    def stranger(self) -> str:
        """Return a new address."""
        return new_address()

    def _coin(self, address: str) -> int:
        return int(self._ask("getAddressInformation", address=address)["balance"])

    def _act(self, name: str, **arguments: object) -> None:
        self._ask("developmentAct", act=name, arguments=arguments)

    def _ask(self, method: str, /, **asked: object) -> Any:
        return Toncenter(self.url, timeout_s=TIMEOUT_S).ask(method, **asked)

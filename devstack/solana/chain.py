"""Starts a Solana chain with the catalogue's tokens, a rich buyer, and SOL for the hot wallet.

Made by devstack.solana.family. The SOL comes by a transaction that the scan sees, and is booked as the gateway's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from solders.pubkey import Pubkey

from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Pair
from devstack.simulated.chain import SimulatedChain
from devstack.solana.buyer import NEWEST, Buyer, new_address
from devstack.solana.node import SolanaNode
from devstack.solana.programs import associated

COINS: Final = 1_000_000
HOT_COINS: Final = 1_000
LAMPORTS: Final = 10**9
TIMEOUT_S: Final = 10.0


class SolanaChain(SimulatedChain):
    """A Solana chain. It installs the mints and funds once; the chain's file keeps them."""

    hot_coins = HOT_COINS

    def __init__(self, node: SolanaNode, *, pairs: Sequence[Pair], buyer_key: str) -> None:
        super().__init__(node, pairs=pairs)
        self._buyer = Buyer(buyer_key)

    def equip(self) -> None:
        """Install mints and coin unless the chain has them. Raises ProviderError."""
        if self._coin(self._buyer.address):
            return
        for pair in self._pairs:
            if pair.contract is not None:
                self._act("mint", address=pair.contract, decimals=pair.decimals)
                units = COINS * 10**pair.decimals
                self._act("tokens", address=self._buyer.address, mint=pair.contract, units=units)
        # Last: its presence shows that everything is there.
        self._act("coin", address=self._buyer.address, units=COINS * LAMPORTS)

    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send coin or tokens from the buyer."""
        return self._buyer.pay(self._rpc(), pair, to=to, units=units)

    def balance(self, pair: Pair, address: str) -> int:
        """Return what an address holds at the newest block."""
        if pair.contract is None:
            return self._coin(address)
        holding = str(associated(Pubkey.from_string(address), Pubkey.from_string(pair.contract)))
        if self._value("getAccountInfo", holding, encoding="base64") is None:
            return 0
        return int(self._value("getTokenAccountBalance", holding)["amount"])

    def stranger(self) -> str:
        """Return a new address."""
        return new_address()

    def _coin(self, address: str) -> int:
        return int(self._value("getBalance", address))

    def _value(self, method: str, address: str, **options: object) -> Any:
        return self._rpc().call(method, [address, {**NEWEST, **options}], dict[str, Any])["value"]

    def _act(self, name: str, **arguments: object) -> None:
        self._rpc().call("development_act", [name, arguments], bool)

    def _rpc(self) -> JsonRpc:
        return JsonRpc(self.url, timeout_s=TIMEOUT_S)

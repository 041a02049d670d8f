"""Names our addresses and coins without a database; implements chains.base.Ours. Used to measure reading."""

from __future__ import annotations

from collections.abc import Collection

from chains.base import Ours


class Known(Ours):
    """A fixed set of addresses and coins that are ours; empty by default."""

    def __init__(self, addresses: Collection[str] = (), coins: Collection[tuple[str, int]] = ()) -> None:
        self._addresses, self._coins = set(addresses), set(coins)

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        return self._addresses.intersection(seen)

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        return self._coins.intersection(seen)

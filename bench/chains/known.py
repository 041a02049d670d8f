"""Says what of a block is ours where no database is asked, as chains.base.Ours. Used by what measures reading."""

from __future__ import annotations

from collections.abc import Collection


class Known:
    """What is ours is told at once; without any, nobody's is."""

    def __init__(self, addresses: Collection[str] = (), coins: Collection[tuple[str, int]] = ()) -> None:
        self._addresses, self._coins = set(addresses), set(coins)

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        return self._addresses.intersection(seen)

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        return self._coins.intersection(seen)

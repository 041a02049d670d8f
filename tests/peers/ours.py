"""Provides our addresses and coins to a reader from a function or a set, and one block in the form of a scan."""

from __future__ import annotations

from collections.abc import Callable, Collection

from chains.base import BlockScan, Ours
from chains.family import Reader

Find = Callable[[Collection[str]], Collection[str]]


class Finds(Ours):
    """Ours is what a function picks."""

    def __init__(self, find: Find, *, keys: Find | None = None, hot: str | None = None) -> None:
        self._find, self._keys, self._hot = find, keys or find, hot

    @property
    def hot(self) -> str | None:
        return self._hot

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        return self._find(seen)

    def keys(self, seen: Collection[str]) -> Collection[str]:
        return self._keys(seen)

    def coins(self, _seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        return ()


NOBODY = Finds(lambda _seen: ())
EVERYBODY = Finds(lambda seen: seen)


def scan_of(reader: Reader, height: int, ours: Ours) -> BlockScan | None:
    """Return the scan of one block, None if it is not there yet."""
    return next(iter(reader.scan(height - 1, height, ours)), None)

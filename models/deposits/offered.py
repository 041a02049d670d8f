"""Lists the networks offered to buyers: those with providers whose scan has begun. Used by actors.

A scan begins at the head of its chain. A payment to an address before that, below the first block, would be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final

from models.deposits import cursors

FindBegun = Callable[[Collection[str]], Collection[str]]

# How long it is believed that a scan has not begun. One that has never stops.
CACHE_S: Final = 0.5


class OfferedNetworks:
    """One per process, safe to share between threads: the worst is one question too many."""

    def __init__(self, served: frozenset[str], *, find_begun: FindBegun = cursors.begun) -> None:
        self._served = served
        self._find_begun = find_begun
        self._offered: frozenset[str] = frozenset()
        self._asked_at = float("-inf")

    def read(self) -> frozenset[str]:
        """Return the codes of these networks; asks PostgreSQL only while a scan is still to begin."""
        if len(self._offered) < len(self._served) and time.monotonic() - self._asked_at > CACHE_S:
            self._offered |= frozenset(self._find_begun(self._served - self._offered))
            self._asked_at = time.monotonic()
        return self._offered

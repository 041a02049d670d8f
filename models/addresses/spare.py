"""Checks that the address pool can spare addresses for work that can wait, so that signed calls get the last ones.

Asked by actors.batches and, by way of actors.context, for what buyers do over payment links.
"""

from __future__ import annotations

import math
from time import monotonic

from models.addresses.reservations import level


class AddressReserve:
    """Knows by family whether there are more than `reserved` addresses. Safe to share between threads."""

    def __init__(self, reserved: int, *, fresh_s: float = math.inf) -> None:
        """Look at the pool when first asked for a family, and again once that look is older than fresh_s."""
        self._reserved, self._fresh_s = reserved, fresh_s
        self._looks: dict[str, tuple[float, bool]] = {}

    def allows(self, family: str) -> bool:
        """Return True if the pool has more addresses than signed calls may need before the signer makes others."""
        stale_at, is_spare = self._looks.get(family, (-math.inf, False))
        if monotonic() < stale_at:
            return is_spare
        is_spare = level(family) > self._reserved
        self._looks[family] = (monotonic() + self._fresh_s, is_spare)
        return is_spare

"""Bounds what a node asks for when it answers alone. Used by the families for the prices that spends offer.

Where several providers are configured and one answers, its word is compared with the last figure of which none decided
alone: it may be twice or half as much. With less, spends would fail for their fees. Without such a figure from the last
hour, the operator's cap is the only bound.
"""

import threading
import time
from typing import Final

FACTOR_MAX: Final = 2
AGREED_FOR_S: Final = 3_600.0


class AgreedFigures:
    """The last figures of which no provider decided alone, by name. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, float]] = {}

    def bounded(self, name: str, figure: int, *, voices: int, providers: int) -> int:
        """Return a figure, kept within the bounds for one voice among several providers."""
        now = time.monotonic()
        with self._lock:
            if voices > 1 or providers == 1:
                self._known[name] = figure, now
                return figure
            agreed, at = self._known.get(name, (figure, now))
        if now - at > AGREED_FOR_S:
            return figure
        # Half of it, rounded up.
        return min(max(figure, -(-agreed // FACTOR_MAX)), FACTOR_MAX * agreed)

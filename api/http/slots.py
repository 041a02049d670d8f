"""Bounds how many threads wait for PostgreSQL, so that one that is slow or silent leaves some for everything else.

Used by api.http.dispatch, api.pages.pages and api.app, for what the web process reads itself; calls have slots of their
own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from core.errors import GatewayBusy

# A crowd of reads passes within this, where PostgreSQL answers; where it does not, the rest are refused after it.
PATIENCE_S: Final = 0.1


class Slots:
    """So many at once. Shared by the process's threads."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Do something inside a slot. Raises GatewayBusy if none is free in time."""
        if not self._free.acquire(timeout=PATIENCE_S):
            raise GatewayBusy
        try:
            yield
        finally:
            self._free.release()

"""Bounds how many threads wait for PostgreSQL, so that one that is slow or silent leaves some for everything else.

Used by api.http.dispatch, api.pages.pages and api.app, for what the web process reads itself; calls have slots of their
own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from actors.queue.shares import Shares
from core.errors import GatewayBusy

# A crowd of reads passes within this, where PostgreSQL answers; where it does not, the rest are refused after it.
PATIENCE_S: Final = 0.1


class Slots:
    """So many at once. Shared by the process's threads."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)
        # Half of them for one merchant; a crowd of its reads waits as the others do.
        self._shares = Shares(count - count // 2, waiting_max=count, patience_s=PATIENCE_S)

    @contextlib.contextmanager
    def taken(self, merchant_id: UUID | None = None) -> Iterator[None]:
        """Do something inside a slot, for a merchant if it is one's. Raises GatewayBusy if none is free in time."""
        with self._shares.taken(merchant_id):
            if not self._free.acquire(timeout=PATIENCE_S):
                raise GatewayBusy
            try:
                yield
            finally:
                self._free.release()

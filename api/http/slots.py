"""Limits how many threads wait for PostgreSQL, so that a slow or silent database leaves threads for other work.

Used by api.http.dispatch, api.pages.pages and api.app for the web process's own reads; calls have slots of their own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from actors.queue.merchant_limits import Shares
from core.errors import GatewayBusy

# If PostgreSQL answers, a burst of reads is done within this time. If it does not, the rest are refused after it.
PATIENCE_S: Final = 0.1


class Slots:
    """Limits concurrent reads of PostgreSQL. Shared by the process's threads."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)
        # Half of them for one merchant; the rest of its reads wait like others.
        self._shares = Shares(count - count // 2, waiting_max=count, patience_s=PATIENCE_S)

    @contextlib.contextmanager
    def taken(self, merchant_id: UUID | None = None) -> Iterator[None]:
        """Hold a slot, for a merchant if the read is for one. Raises GatewayBusy if none becomes free in time."""
        with self._shares.taken(merchant_id):
            if not self._free.acquire(timeout=PATIENCE_S):
                raise GatewayBusy
            try:
                yield
            finally:
                self._free.release()

"""Provides the gateway's time without a query for each answer. Used for X-Gateway-Time, by api.http.dispatch and pages.

The gateway's clock is PostgreSQL's (models.db.base.app_now). It is read at most once a second; in between, this
process's monotonic clock moves it on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from falcon import Response

from models.db.base import StoreUnavailableError, app_now

# The gateway's time in milliseconds, for pages that count down on devices with a wrong clock.
CLOCK_HEADER: Final = "X-Gateway-Time"
# A reading is used for this long; after a failed one, the next is tried after this time.
FRESH_S: Final = 1.0


class GatewayClock:
    """The gateway's clock. Safe to share between threads."""

    def __init__(
        self, *, read: Callable[[], datetime] = app_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._reading = threading.Lock()
        # The gateway's time minus the monotonic clock; None before the first reading.
        self._offset_s: float | None = None
        self._stale_at = float("-inf")

    def stamp(self, resp: Response) -> None:
        """Write the gateway's time into a response, if it is known."""
        now_ms = self.now_ms()
        if now_ms is not None:
            resp.set_header(CLOCK_HEADER, str(now_ms))

    def now_ms(self) -> int | None:
        """Return the gateway's time in milliseconds; None before PostgreSQL was first read."""
        # One thread waits for PostgreSQL. The others use the last reading.
        if self._monotonic() >= self._stale_at and self._reading.acquire(blocking=False):
            try:
                # Requests that need PostgreSQL report that it is down. An earlier reading stays right meanwhile.
                with contextlib.suppress(StoreUnavailableError):
                    self._offset_s = self._read().timestamp() - self._monotonic()
            finally:
                self._stale_at = self._monotonic() + FRESH_S
                self._reading.release()
        return None if self._offset_s is None else int((self._offset_s + self._monotonic()) * 1000)

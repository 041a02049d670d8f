"""Lists the states that need an operator while the gateway can serve. Used by GET /readyz and /metrics.

No web process can mend these states, so none makes a process unready: a balancer would take away working processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import structlog

from api.gateway import Heartbeats
from api.health.concerns import Fault, concerns
from core.settings.settings import Settings

log = structlog.get_logger("sluice.api")

# An answer is used for this long.
VERDICT_S: Final = 5.0


class Attention:
    """Runs the checks at most every few seconds and in one thread at a time, whatever the number of requests."""

    def __init__(
        self, settings: Settings, heartbeats: Heartbeats, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._concerns = concerns(settings, heartbeats)
        self._heartbeats = heartbeats
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._stale_at = float("-inf")
        self._faults: Mapping[str, tuple[Fault, ...]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the states to look at, each line beginning with its check's name."""
        return tuple(f"{name}: {fault.text}" for name, faults in self.faults().items() for fault in faults)

    def faults(self) -> Mapping[str, tuple[Fault, ...]]:
        """Return the faults by check, also of checks without any."""
        # The first caller waits for the answer; a caller that comes during a renewal gets the last one.
        if self._lock.acquire(blocking=self._stale_at == float("-inf")):
            try:
                if self._monotonic() >= self._stale_at:
                    self._faults = dict(self._read())
                    self._stale_at = self._monotonic() + VERDICT_S
            finally:
                self._lock.release()
        return self._faults

    def _read(self) -> Iterator[tuple[str, tuple[Fault, ...]]]:
        for name, concern in self._concerns.items():
            try:
                yield name, tuple(concern())
            except Exception as error:  # noqa: BLE001 - a check that fails needs a look itself
                log.warning("attention.unreadable", check=name, reason=str(error))
                yield name, (Fault("cannot be checked now"),)

"""Lists the states that need an operator while the gateway can serve. Used by GET /readyz and `sluice doctor`.

No web process can mend these states, so none makes a process unready: a balancer would take away working processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import structlog

from actors.queue.registry import QUEUES
from api.gateway import Heartbeats
from core.catalogue.catalogue import load_catalogue
from core.settings.settings import Settings
from models.deposits import scans
from models.invariants import checkpoint
from models.rates import rates

Concern = Callable[[], Iterator[str]]

log = structlog.get_logger("sluice.api")

# An answer is used for this long.
VERDICT_S: Final = 5.0
# The most frequent ticks come every second or faster.
TICK_AGE_MAX_S: Final = 30.0
# The audit runs every minute.
AUDIT_AGE_MAX_S: Final = 900.0


def concerns(settings: Settings, heartbeats: Heartbeats) -> dict[str, Concern]:
    """Return the checks by name. Each returns a line for each fault, and nothing if all is well."""
    return {
        "queues": lambda: _unserved(heartbeats),
        "scheduler": lambda: _silent_scheduler(heartbeats),
        "rates": lambda: _unpriced(settings),
        "scans": lambda: _unscanned(settings),
        "audit": _old_audit,
        "proxies": lambda: _hidden_sources(settings),
    }


class Attention:
    """Runs the checks at most every few seconds and in one thread at a time, whatever the number of requests."""

    def __init__(
        self, settings: Settings, heartbeats: Heartbeats, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._concerns = concerns(settings, heartbeats)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._stale_at = float("-inf")
        self._names: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the states to look at, each line beginning with its check's name."""
        # The first caller waits for the answer; a caller that comes during a renewal gets the last one.
        if self._lock.acquire(blocking=self._stale_at == float("-inf")):
            try:
                if self._monotonic() >= self._stale_at:
                    self._names = tuple(self._read())
                    self._stale_at = self._monotonic() + VERDICT_S
            finally:
                self._lock.release()
        return self._names

    def _read(self) -> Iterator[str]:
        for name, concern in self._concerns.items():
            try:
                yield from (f"{name}: {text}" for text in concern())
            except Exception as error:  # noqa: BLE001 - a check that fails needs a look itself
                log.warning("attention.unreadable", check=name, reason=str(error))
                yield f"{name}: cannot be checked now"


def unpriced_coins(settings: Settings) -> list[str]:
    """Return the coins of the served networks that have no fresh rate."""
    catalogue = load_catalogue(settings.environment)
    coins = {pair.currency for network in settings.rpc_urls for pair in catalogue.pairs_on(network)}
    return sorted(coins - rates.load_market().rates.keys()) if coins else []


def _unserved(heartbeats: Heartbeats) -> Iterator[str]:
    idle = [queue for queue in QUEUES if not heartbeats.consumers(queue)]
    if idle:
        yield f"no process serves {', '.join(idle)}"


def _silent_scheduler(heartbeats: Heartbeats) -> Iterator[str]:
    age_s = heartbeats.tick_age_s()
    if age_s is None:
        yield "does not tick"
    elif age_s > TICK_AGE_MAX_S:
        yield f"last ticked {age_s:.0f} s ago"


def _unpriced(settings: Settings) -> Iterator[str]:
    coins = unpriced_coins(settings)
    if coins:
        yield f"no fresh rate for {', '.join(coins)}"


def _unscanned(settings: Settings) -> Iterator[str]:
    begun = scans.read(load_catalogue(settings.environment).networks)
    for network in settings.rpc_urls:
        if network not in begun:
            yield f"{network} was never scanned"
        elif begun[network].is_halted:
            yield f"{network} stands still, the log says why"
        elif not begun[network].is_current:
            yield f"{network} is {begun[network].lag_blocks:.0f} blocks behind its chain"


def _old_audit() -> Iterator[str]:
    age_s = checkpoint.passed_age_s()
    if age_s is None:
        yield "the books were never found right yet"
    elif age_s > AUDIT_AGE_MAX_S:
        yield f"the books were last found right {age_s:.0f} s ago"


def _hidden_sources(settings: Settings) -> Iterator[str]:
    # The gateway itself speaks plain HTTP only: if callers use https, a proxy in front of it ends TLS.
    is_behind = settings.environment == "production" and settings.base_url.startswith("https://")
    if is_behind and not settings.trusted_proxies:
        yield "TRUSTED_PROXIES is missing: behind a proxy all callers share one address, and one limit"

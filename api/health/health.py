"""Checks if this gateway can serve. Called for GET /readyz, by load balancers and by programs that wait for a start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from api.gateway import Queues
from models.db import base, migrate, server

Checks = Mapping[str, Callable[[], None]]

log = structlog.get_logger("sluice.api")

VERDICT_S: Final = 1.0


class NotReadyError(Exception):
    """The reason why a check failed."""


class Readiness:
    """Runs the checks at most once a second and in one thread at a time, whatever the number of requests."""

    def __init__(self, checks: Checks, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._checks = checks
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._stale_at = float("-inf")
        # Unknown counts as failing until the first verdict.
        self._failing: tuple[str, ...] = tuple(checks)

    def failing(self) -> tuple[str, ...]:
        """Return the names of the checks that fail; nothing if the gateway is ready."""
        # A check may hang as long as its store does: the other threads answer with the last verdict meanwhile.
        if self._lock.acquire(blocking=False):
            try:
                if self._monotonic() >= self._stale_at:
                    self._failing = tuple(name for name, check in self._checks.items() if not _passes(name, check))
                    self._stale_at = self._monotonic() + VERDICT_S
            finally:
                self._lock.release()
        return self._failing


def _passes(name: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception as error:  # noqa: BLE001 - any error of a store means not ready
        log.warning("readiness.failed", check=name, reason=str(error))
        return False
    return True


def store_checks(queues: Queues) -> Checks:
    """Return the checks of both stores, of the schema that this version needs, and of writes."""
    return {
        "postgresql": _check_postgresql,
        "redis": queues.ping,
        "migrations": _check_migrations,
        "writes": _check_writes,
    }


def _check_postgresql() -> None:
    base.one("SELECT 1")


def _check_migrations() -> None:
    applied = base.column("SELECT name FROM schema_migrations")
    pending = [name for name, _ in migrate.available() if name not in applied]
    if pending:
        raise NotReadyError(f"pending migrations: {', '.join(pending)}")


def _check_writes() -> None:
    reason = server.refusal()
    if reason:
        raise NotReadyError(reason)

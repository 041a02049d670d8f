"""Keeps heartbeats in Redis: which processes serve which queue, and when the scheduler last notified an actor.

Kept by actors.queue.broker.
Nothing but monitoring reads them, so that a flush costs a few seconds of not knowing.
"""

from __future__ import annotations

import threading
import time
from typing import Final
from uuid import uuid4

from actors.queue.link import Command, RedisLink

# How often a scheduler gives its sign, and the silence after which a process counts as gone.
EVERY_S: Final = 5.0
SILENCE_MAX_S: Final = 30.0
# The heartbeats of a queue that no process serves expire.
_KEPT_S: Final = 3_600
# In place of a queue's name, which has no such character.
_CONNECTIONS: Final = "~connections"
# Redis that began empty, or was flushed, knows no process before each had the time to report.
NEW_S: Final = 10.0


class Heartbeats:
    """Writes one process's heartbeats and reads those of all. Safe to share between threads.

    Ages are by Redis's clock. All methods raise LinkDownError.
    """

    def __init__(self, link: RedisLink, namespace: str) -> None:
        self._link = link
        self._namespace = namespace
        self._lock = threading.Lock()
        self._tick_at = 0.0
        self._process = str(uuid4())
        # The connections to PostgreSQL that this process may open.
        self.connections_max = 0

    def serving(self, queue_name: str, process: str) -> list[Command]:
        """Return the commands that report a process as serving a queue."""
        key, now_ms = self._serving(queue_name), self._link.now_ms()
        return [*self._report(key, process), ("SET", self._began(), now_ms, "NX"), *self._connections_report()]

    def note_connections(self) -> None:
        """Report how many connections to PostgreSQL this process may open."""
        self._link.run(self._connections_report())

    def connections(self) -> int:
        """Return the connections to PostgreSQL that the processes that lately reported may open together."""
        oldest_ms = int(self._link.now_ms() - SILENCE_MAX_S * 1000)
        reported = self._link.run([("ZRANGEBYSCORE", self._serving(_CONNECTIONS), oldest_ms, "+inf")])[0]
        return sum(int(member.rpartition(b" ")[2]) for member in reported)

    def is_new(self) -> bool:
        """Return True while Redis began empty, or was flushed, so short ago that processes may not have reported."""
        now_ms = self._link.now_ms()
        began_ms = self._link.run([("SET", self._began(), now_ms, "NX"), ("GET", self._began())])[1]
        return now_ms - int(began_ms) < NEW_S * 1000

    def _connections_report(self) -> list[Command]:
        if not self.connections_max:
            return []
        return self._report(self._serving(_CONNECTIONS), f"{self._process} {self.connections_max}")

    def _report(self, key: str, member: str) -> list[Command]:
        now_ms = self._link.now_ms()
        return [
            ("ZADD", key, now_ms, member),
            ("ZREMRANGEBYSCORE", key, "-inf", now_ms - _KEPT_S * 1000),
            ("EXPIRE", key, _KEPT_S),
        ]

    def leave(self, queue_name: str, process: str) -> None:
        """Report that a process no longer serves a queue."""
        self._link.run([("ZREM", self._serving(queue_name), process)])

    def consumers(self, queue_name: str) -> int:
        """Return the number of processes that lately reported serving a queue."""
        oldest_ms = self._link.now_ms() - SILENCE_MAX_S * 1000
        return int(self._link.run([("ZCOUNT", self._serving(queue_name), int(oldest_ms), "+inf")])[0])

    def tick(self) -> None:
        """Report that a scheduler's notification went out; at most once in EVERY_S."""
        now = time.monotonic()
        # LogThrottle: the lock is for those times alone.
        if now < self._tick_at:
            return
        with self._lock:
            is_due, self._tick_at = now >= self._tick_at, max(self._tick_at, now + EVERY_S)
        if is_due:
            self._link.run([("SET", self._ticked(), self._link.now_ms(), "EX", _KEPT_S)])

    def tick_age_s(self) -> float | None:
        """Return the seconds since a scheduler's last notification; None if unknown, or over an hour."""
        ticked_ms = self._link.run([("GET", self._ticked())])[0]
        return None if ticked_ms is None else max(0, self._link.now_ms() - int(ticked_ms)) / 1000

    def _serving(self, queue_name: str) -> str:
        return f"{self._namespace}:heartbeats:{queue_name}"

    def _began(self) -> str:
        return f"{self._namespace}:heartbeats:~began"

    def _ticked(self) -> str:
        return f"{self._namespace}:heartbeats:~scheduler"

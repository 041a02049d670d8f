"""Counts the requests of one subject in sliding windows. Pure; used by api.limits.limits under its lock.

A window slides by weighing the previous one: the part of it that lies within the last `length_ms` counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class Window:
    """The requests of a subject in the present window and in the previous one."""

    length_ms: int
    requests_max: int
    index: int = 0
    current: int = 0
    previous: int = 0
    # The part of `current` that was not yet sent to the other processes.
    unsynced: int = 0

    def move(self, now_ms: int) -> None:
        """Begin a new window if its time has come. A clock that was set back begins one too."""
        index = now_ms // self.length_ms
        if index != self.index:
            self.previous = self.current if index == self.index + 1 else 0
            self.index, self.current, self.unsynced = index, 0, 0

    def count(self, requests: int) -> None:
        """Add requests, or subtract some."""
        self.current += requests
        self.unsynced += requests

    def is_over(self, now_ms: int) -> bool:
        """Return True if the count exceeds the limit."""
        return self.current + self.previous * self._left(now_ms) > self.requests_max

    def wait_ms(self, now_ms: int) -> float:
        """Return the time until one more request is within the limit."""
        left, room = self._left(now_ms), self.requests_max - 1 - self.current
        if room >= 0:
            # The previous window weighs less with every moment.
            return (left - room / self.previous) * self.length_ms
        # The present window must end first, and then weigh little enough itself.
        return (left + 1 - (self.requests_max - 1) / self.current) * self.length_ms

    def take_unsynced(self) -> int:
        """Return the part that the other processes do not yet know, and mark it as known."""
        unsynced, self.unsynced = self.unsynced, 0
        return unsynced

    def merge_totals(self, index: int, current: int, previous: int) -> None:
        """Merge the totals of all processes, but never below our own count: Redis may have been flushed."""
        if index == self.index:
            self.current = max(self.current, current + self.unsynced)
            self.previous = max(self.previous, previous)

    def _left(self, now_ms: int) -> float:
        return 1 - now_ms % self.length_ms / self.length_ms


class Counter:
    """Counts the requests of one subject in every window of its limit."""

    __slots__ = ("tell_at_ms", "windows")

    def __init__(self, limit: Iterable[tuple[int, int]]) -> None:
        self.windows = tuple(Window(length_ms, requests_max) for length_ms, requests_max in limit)
        self.tell_at_ms = 0

    def count(self, requests: int, now_ms: int) -> None:
        """Add requests at this moment."""
        for window in self.windows:
            window.move(now_ms)
            window.count(requests)

    def excess_wait_ms(self, now_ms: int) -> float:
        """Remove the last request if it exceeded the limit, and return the time until it will fit; else return 0."""
        over = [window for window in self.windows if window.is_over(now_ms)]
        if not over:
            return 0.0
        for window in self.windows:
            window.count(-1)
        return max(window.wait_ms(now_ms) for window in over)

    def next_wait_ms(self, now_ms: int) -> float:
        """Return the time until one more request fits; 0 if it fits now. Counts nothing."""
        self.count(1, now_ms)
        wait_ms = self.excess_wait_ms(now_ms)
        if not wait_ms:
            for window in self.windows:
                window.count(-1)
        return wait_ms

    def is_due(self, now_ms: int) -> bool:
        """Return True if the counts should be sent: after some time, or after a tenth of a limit."""
        return now_ms >= self.tell_at_ms or any(10 * window.unsynced >= window.requests_max for window in self.windows)

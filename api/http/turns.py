"""Orders requests that wait for a thread: each source has a turn. Used by api.http.worker in its one loop.

In one queue, a source with a thousand connections would have every other source wait for all of its requests. IPv6
sources take turns by their widest block.
"""

from __future__ import annotations

from api.http.connection import Connection
from api.limits.sources import Block, Source


class Turns:
    """Waiting requests, by source."""

    def __init__(self) -> None:
        # Ordered: the source whose turn is next, and each source's oldest request, come first.
        self._waiting: dict[Block, dict[Connection, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, conn: Connection, source: Source) -> None:
        """Queue a request behind the others of its source."""
        self._waiting.setdefault(source[-1], {})[conn] = None

    def take(self) -> Connection:
        """Return the next request, and put its source at the end. Requires that one waits."""
        block = next(iter(self._waiting))
        queue = self._waiting.pop(block)
        conn = next(iter(queue))
        del queue[conn]
        if queue:
            self._waiting[block] = queue
        return conn

    def remove(self, conn: Connection, source: Source) -> None:
        """Remove a request whose connection ends."""
        queue = self._waiting[source[-1]]
        del queue[conn]
        if not queue:
            del self._waiting[source[-1]]

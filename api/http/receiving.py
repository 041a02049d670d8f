"""Receives requests without a thread: heads and small bodies arrive here. Used by api.http.worker in its one loop.

Nothing here waits. What has arrived is handed on, and what takes too long is ended by whoever looks at the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from selectors import BaseSelector
from typing import Final

from api.http.arrival import Arrival, Verdict
from api.http.client_ip import Proxies, client_ip, is_trusted
from api.http.connection import Connection
from api.limits.limits import source_name
from core.errors import DomainError, RequestMalformed

OPEN_MAX: Final = 128

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where a connection goes from here; its receiver has it alone."""

    # A request that is there, or one that a thread has to read the rest of.
    arrived: Callable[[Connection, Verdict], None]
    refused: Callable[[Connection, DomainError], None]
    dropped: Callable[[Connection], None]


class Receiving:
    """Requests on their way. open_max: so many may one source have; with another its oldest ends."""

    def __init__(
        self, poller: BaseSelector, doors: Doors, *, trusted_proxies: Proxies = (), open_max: int = OPEN_MAX
    ) -> None:
        self._poller = poller
        self._doors = doors
        self._trusted_proxies = trusted_proxies
        self._open_max = open_max
        # In the order in which they began.
        self._arriving: dict[Connection, Arrival] = {}
        self._by_source: dict[str, dict[Connection, None]] = {}

    def begin(self, conn: Connection, arrived: bytes = b"") -> None:
        """Begin a request; `arrived` came behind the one before."""
        conn.began_at = time.monotonic()
        try:
            chunk = arrived or conn.receive()
        except OSError:
            chunk = b""
        if chunk == b"":
            self._doors.dropped(conn)
            return
        arrival = Arrival(conn.began_at, None)
        verdict = Verdict.WAIT if chunk is None else arrival.add(chunk)
        if verdict is Verdict.WAIT:
            # Most are there at once, and never on their way.
            self._arriving[conn] = arrival
            self._count(conn, arrival, self._peer(conn))
            self._wait(conn, arrival)
        else:
            self._judge(conn, arrival, verdict)

    def end_begun_before(self, moment: float) -> None:
        """End requests that began earlier."""
        while self._arriving:
            conn, arrival = next(iter(self._arriving.items()))
            if arrival.began_at >= moment:
                break
            self._end(conn, arrival)

    def hurry(self, began_at: float) -> None:
        """Treat all as if they had begun then, or earlier."""
        for arrival in self._arriving.values():
            arrival.began_at = min(arrival.began_at, began_at)

    def _on_readable(self, conn: Connection) -> None:
        arrival = self._arriving.get(conn)
        if arrival is None:
            return
        try:
            chunk = conn.receive()
        except OSError:
            self._drop(conn)
            return
        if chunk is None:
            conn.poll(self._poller, self._on_readable)
        elif chunk:
            self._judge(conn, arrival, arrival.add(chunk))
        else:
            self._end(conn, arrival)

    def _judge(self, conn: Connection, arrival: Arrival, verdict: Verdict) -> None:
        if verdict is Verdict.WAIT:
            self._wait(conn, arrival)
        elif verdict is Verdict.ENDLESS:
            self._forget(conn)
            self._doors.refused(conn, RequestMalformed())
        else:
            self._hand_over(conn, arrival, verdict)

    def _wait(self, conn: Connection, arrival: Arrival) -> None:
        """Wait for more; for a body, having told the client to send it if it asks."""
        if arrival.take_head():
            if arrival.source is None:
                self._count(conn, arrival, self._forwarded(conn, arrival))
            if arrival.take_expectation():
                conn.send(_CONTINUE)
        conn.poll(self._poller, self._on_readable)

    def _end(self, conn: Connection, arrival: Arrival) -> None:
        """Answer who sends no more than a head and part of its body; who sent less asked nothing."""
        if arrival.head_bytes:
            self._hand_over(conn, arrival, Verdict.WHOLE)
        else:
            self._drop(conn)

    def _hand_over(self, conn: Connection, arrival: Arrival, verdict: Verdict) -> None:
        self._forget(conn)
        conn.is_long = verdict is Verdict.LONG
        conn.unreader.hold(bytes(arrival.data), is_whole=not conn.is_long)
        self._doors.arrived(conn, verdict)

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        self._doors.dropped(conn)

    def _forget(self, conn: Connection) -> None:
        arrival = self._arriving.pop(conn, None)
        if arrival is None:
            return
        conn.unpoll(self._poller)
        if arrival.source is not None:
            held = self._by_source[arrival.source]
            held.pop(conn, None)
            if not held:
                del self._by_source[arrival.source]

    # Whose they are --------------------------------------------------------------------------------------------

    def _peer(self, conn: Connection) -> str | None:
        """Return whose open requests those of a peer are; a proxy's have no known owner yet."""
        return self._source(conn, "", ())

    def _forwarded(self, conn: Connection, arrival: Arrival) -> str | None:
        return self._source(conn, arrival.forwarded_for(), self._trusted_proxies)

    def _source(self, conn: Connection, forwarded_for: str, proxies: Proxies) -> str | None:
        if not isinstance(conn.client, tuple):
            return None
        address = client_ip({"REMOTE_ADDR": conn.client[0], "HTTP_X_FORWARDED_FOR": forwarded_for}, proxies)
        return None if address is None or is_trusted(address, self._trusted_proxies) else source_name(address)

    def _count(self, conn: Connection, arrival: Arrival, source: str | None) -> None:
        """Count an open request for its source, and end the oldest if there are too many."""
        if source is None:
            return
        arrival.source = source
        held = self._by_source.setdefault(source, {})
        held[conn] = None
        if len(held) > self._open_max:
            self._drop(next(iter(held)))

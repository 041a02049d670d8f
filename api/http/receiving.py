"""Receives heads and bodies of requests without a thread. Used by api.http.worker in its one loop.

Nothing here waits. A complete request goes to a thread; the worker's loop ends requests that take too long. If all
requests together hold too much memory, those of the source that holds the most end first, so that the bodies of one
source keep out no other's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from selectors import BaseSelector
from typing import Final

from api.http.arrival import Arrival, Verdict
from api.http.connection import Connection
from api.http.crowd import UNKNOWN, Crowd, greediest
from api.limits.sources import Source
from core.errors import DomainError, GatewayBusy, RequestMalformed

# The sum of memory for requests that came in several pieces: from their first byte until they are answered.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The callbacks for a connection that leaves here; they then own it."""

    # For a complete request, or one that is refused whatever bytes follow.
    arrived: Callable[[Connection, Verdict], None]
    refused: Callable[[Connection, DomainError], None]
    dropped: Callable[[Connection], None]


class Receiving:
    """The incomplete requests. The crowd limits their number by source."""

    def __init__(
        self,
        poller: BaseSelector,
        doors: Doors,
        crowd: Crowd,
        *,
        held_bytes_max: int = HELD_BYTES_MAX,
    ) -> None:
        self._poller = poller
        self._doors = doors
        self._crowd = crowd
        self._held_bytes_max = held_bytes_max
        self._held_bytes = 0
        # The bytes that requests hold while they are being answered.
        self._answering: dict[Connection, int] = {}
        # In the order of their first bytes.
        self._arriving: dict[Connection, Arrival] = {}

    def begin(self, conn: Connection, arrived: bytes = b"") -> None:
        """Begin a request; `arrived` are bytes that came behind the previous one."""
        conn.began_at = time.monotonic()
        try:
            chunk = arrived or conn.receive()
        except OSError:
            chunk = b""
        if chunk == b"":
            self._doors.dropped(conn)
            return
        arrival = Arrival(conn.began_at)
        verdict = Verdict.WAIT if chunk is None else arrival.add(chunk)
        if verdict is Verdict.WAIT:
            # Most requests arrive whole and never come here.
            self._arriving[conn] = arrival
            self._count(conn, self._crowd.peer_source(conn))
            self._wait(conn, arrival)
        else:
            self._judge(conn, arrival, verdict)

    def answered(self, conn: Connection) -> None:
        """Release the bytes of a request that was answered."""
        self._held_bytes -= self._answering.pop(conn, 0)

    def end_begun_before(self, moment: float) -> None:
        """End requests that began before a moment."""
        while self._arriving:
            conn, arrival = next(iter(self._arriving.items()))
            if arrival.began_at >= moment:
                break
            self._end(conn, arrival)

    def hurry(self, began_at: float) -> None:
        """Backdate every incomplete request to `began_at`, so that it times out sooner."""
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
        """Wait for more bytes. For a body, first send 100-continue if the client expects it."""
        if arrival.take_head():
            if conn.source is UNKNOWN:
                self._count(conn, self._crowd.forwarded_source(conn, arrival.forwarded_for()))
            if arrival.take_expectation():
                conn.send(_CONTINUE)
        conn.poll(self._poller, self._on_readable)
        self._hold(arrival)

    def _hold(self, arrival: Arrival) -> None:
        """Count the bytes that a request holds, and end requests, even this one, until the sum is within its limit."""
        self._held_bytes += len(arrival.data) - arrival.counted
        arrival.counted = len(arrival.data)
        while self._held_bytes > self._held_bytes_max and self._arriving:
            conn = greediest({conn: arrival.counted for conn, arrival in self._arriving.items()})
            self._forget(conn)
            self._doors.refused(conn, GatewayBusy())

    def _end(self, conn: Connection, arrival: Arrival) -> None:
        """Hand over a request that ends within its body, to be refused; drop one that ends within its head."""
        if arrival.head_bytes:
            self._hand_over(conn, arrival, Verdict.WHOLE)
        else:
            self._drop(conn)

    def _hand_over(self, conn: Connection, arrival: Arrival, verdict: Verdict) -> None:
        if conn in self._arriving:
            self._forget(conn)
            self._answering[conn] = len(arrival.data)
            self._held_bytes += len(arrival.data)
        conn.is_long = verdict is Verdict.LONG
        if conn.is_long:
            # It is refused, so the parser must not ask the client for the rest.
            arrival.take_expectation()
        conn.unreader.hold(bytes(arrival.data))
        self._doors.arrived(conn, verdict)

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        self._doors.dropped(conn)

    def _forget(self, conn: Connection) -> None:
        arrival = self._arriving.pop(conn, None)
        if arrival is None:
            return
        conn.unpoll(self._poller)
        self._crowd.discard(conn)
        self._held_bytes -= arrival.counted

    def _count(self, conn: Connection, source: Source) -> None:
        self._crowd.add(conn, source, self._drop, is_open=True)

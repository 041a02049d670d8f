"""Counts the connections that wait for their clients, by source, and ends the oldest of a source that has too many.

Used by the parts of api.http.worker, in its one loop. A connection waits while its request or the rest of its answer
is on the way (it is open then), while it is idle, and while its client is to close it. It is not counted while a thread
answers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from api.http.client_ip import Proxies, client_ip, is_trusted
from api.http.connection import Callback, Connection
from api.limits.sources import Block, Source, source_of

OPEN_MAX: Final = 128
# A trusted proxy's connections until a head names the client, and all connections of a unix socket.
UNKNOWN: Final[Source] = (Block("unknown", 1),)

_Groups = dict[Block, dict[Connection, None]]


class Crowd:
    """The waiting connections. open_max: open ones of a source; one more ends the source's oldest."""

    def __init__(self, *, trusted_proxies: Proxies = (), open_max: int = OPEN_MAX) -> None:
        self._trusted_proxies = trusted_proxies
        self._open_max = open_max
        self._waiting: _Groups = {}
        self._open: _Groups = {}

    def peer_source(self, conn: Connection) -> Source:
        """Return the source of a connection's peer; UNKNOWN for a trusted proxy."""
        if conn.peer_source is None:
            conn.peer_source = self._source(conn, "", ())
        return conn.peer_source

    def forwarded_source(self, conn: Connection, forwarded_for: str) -> Source:
        """Return the source that a trusted proxy names in X-Forwarded-For; for any other peer, its own source."""
        peer = self.peer_source(conn)
        return self._source(conn, forwarded_for, self._trusted_proxies) if peer is UNKNOWN else peer

    def add(self, conn: Connection, source: Source, end: Callback, *, is_open: bool = False) -> None:
        """Start counting a connection. `end` closes it; connections of one source end in the order of adding."""
        self.discard(conn)
        conn.source, conn.end, conn.closed = source, end, self.discard
        _join(self._waiting, conn)
        if is_open and source is not UNKNOWN:
            _join(self._open, conn)
            for block in source:
                if len(self._open[block]) > self._open_max * block.share:
                    _end(next(iter(self._open[block])))
                    return

    def discard(self, conn: Connection) -> None:
        """Stop counting a connection, if it is counted."""
        if conn.source:
            _leave(self._waiting, conn)
            _leave(self._open, conn)
            conn.source = ()

    def end_oldest(self) -> bool:
        """End the oldest waiting connection of the source that has the most; return False if no connection waits."""
        if not self._waiting:
            return False
        block = max(self._waiting, key=lambda block: len(self._waiting[block]) / block.share)
        _end(next(iter(self._waiting[block])))
        return True

    def _source(self, conn: Connection, forwarded_for: str, proxies: Proxies) -> Source:
        if not isinstance(conn.client, tuple):
            return UNKNOWN
        address = client_ip({"REMOTE_ADDR": conn.client[0], "HTTP_X_FORWARDED_FOR": forwarded_for}, proxies)
        return UNKNOWN if address is None or is_trusted(address, self._trusted_proxies) else source_of(address)


def greediest(held_bytes: Mapping[Connection, int]) -> Connection:
    """Return the oldest of these connections whose source holds the most bytes."""
    totals: Counter[Block] = Counter()
    for conn, size in held_bytes.items():
        for block in conn.source:
            totals[block] += size
    greedy = max(totals, key=lambda block: totals[block] / block.share)
    return next(conn for conn in held_bytes if greedy in conn.source)


def _join(groups: _Groups, conn: Connection) -> None:
    for block in conn.source:
        groups.setdefault(block, {})[conn] = None


def _leave(groups: _Groups, conn: Connection) -> None:
    for block in conn.source:
        group = groups.get(block)
        if group is not None and group.pop(conn, conn) is None and not group:
            del groups[block]


def _end(conn: Connection) -> None:
    conn.end(conn)

"""A loop of the worker's with clients of socket pairs, for tests of what receives and what sends in it."""

from __future__ import annotations

import socket
from selectors import DefaultSelector

from gunicorn.config import Config  # type: ignore[import-untyped]

from api.http.connection import Connection


class ClientLoop:
    """A selector, and the clients at the other ends of its connections."""

    def __init__(self) -> None:
        self.clients: dict[Connection, socket.socket] = {}
        self.poller = DefaultSelector()

    def connection(self, source: str) -> Connection:
        """Return a connection from an address."""
        ours, client = socket.socketpair()
        conn = Connection(Config(), ours, (source, 1), ("127.0.0.1", 2))
        self.clients[conn] = client
        return conn

    def turn(self) -> None:
        """Handle the events that are there."""
        for key, _ in self.poller.select(0):
            key.data(key.fileobj)

    def close(self) -> None:
        """Close every connection and client."""
        self.poller.close()
        for conn, client in self.clients.items():
            conn.close()
            client.close()

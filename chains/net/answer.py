"""Bounds the exchange with a node: lookup, connection, head and body share one deadline. Used by chains.net.http.

A socket's own timeout starts again with each byte, so a server that drips its answer would keep a thread for hours.
"""

import http.client
import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from chains.net import names

# Connecting may take this long in all, however many addresses a name has.
CONNECT_TIMEOUT_S: Final = 2.0
HEAD_BYTES_MAX: Final = 64 * 1024
# Body and framing: chunks of one byte each with a long extension end here.
WIRE_BYTES_MAX: Final = 128 * 1024 * 1024
SEND_BYTES: Final = 16 * 1024

_deadline: ContextVar[float] = ContextVar("exchange_deadline", default=float("inf"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bound each exchange inside the block as a whole."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def bounded_pool(address: str, *, size: int) -> urllib3.HTTPConnectionPool:
    """Return a pool of connections to an address that heeds the deadline; no retries and no redirects."""
    pool = urllib3.connection_from_url(address, maxsize=size, retries=False)
    pool.ConnectionCls = _HttpsConnection if pool.scheme == "https" else _HttpConnection
    return pool


def _left_s() -> float:
    """Return the time that is left. Raises TimeoutError."""
    left_s = _deadline.get() - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the answer is too slow")
    # The largest timeout that every platform's sockets take.
    return min(left_s, 3_600.0)


class _Wire(io.RawIOBase):
    """Reads a socket under the deadline and up to a number of bytes."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw, self._sock = raw, sock
        self.bytes_left = HEAD_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s())
        count: int | None = self._raw.readinto(buffer)
        self.bytes_left -= count or 0
        if self.bytes_left < 0:
            raise http.client.HTTPException("the answer is too long")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._wire = _Wire(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._wire)

    def begin(self) -> None:
        super().begin()
        self._wire.bytes_left = WIRE_BYTES_MAX
        # urllib3 logs the URL, which holds the owner's key, where a head has defects.
        self.msg.defects.clear()
        self.msg.set_payload("")


class _HttpConnection(HTTPConnection):
    response_class = _Answer

    def _new_conn(self) -> socket.socket:
        return _connect(self._dns_host, self.port or self.default_port, self.socket_options)

    def send(self, data: Any) -> None:
        _set_timeout(self.sock)
        super().send(data)


class _HttpsConnection(HTTPSConnection):
    response_class = _Answer

    def _new_conn(self) -> socket.socket:
        return _connect(self._dns_host, self.port or self.default_port, self.socket_options)

    def send(self, data: Any) -> None:
        for start in range(0, len(data), SEND_BYTES):
            _set_timeout(self.sock)
            super().send(data[start : start + SEND_BYTES])


def _set_timeout(sock: socket.socket | None) -> None:
    if sock is not None:
        sock.settimeout(_left_s())


def _connect(host: str, port: int, options: Any) -> socket.socket:
    """Return a connection to the first address that accepts one; each gets its share of the time left."""
    addresses = names.addresses_of(host.strip("[]"), port, within_s=_left_s())
    until = time.monotonic() + min(CONNECT_TIMEOUT_S, _left_s())
    failure: OSError = OSError("the name has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        share_s = max(0.01, (until - time.monotonic()) / (len(addresses) - number))
        sock = socket.socket(family, kind, protocol)
        try:
            for option in options or ():
                sock.setsockopt(*option)
            sock.settimeout(share_s)
            sock.connect(address)
            # A handshake of TLS takes its time from here.
            sock.settimeout(_left_s())
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure

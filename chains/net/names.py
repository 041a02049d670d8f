"""Looks up the addresses of a node's name under a deadline. Used by chains.net.answer.

The system's resolver has no deadline of its own, so that each name is looked up in a thread, one at a time: callers
that need the same name wait for the same answer. One that came too late for its caller serves the next.
"""

import os
import socket
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any, Final

from urllib3.util.connection import allowed_gai_family

ADDRESSES_MAX: Final = 8
# The age up to which an answer that came too late is used.
KEPT_S: Final = 60.0

Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


class _Lookup:
    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._ended = threading.Event()
        self._ended_at = 0.0
        self._addresses: Sequence[Address] = ()
        self._failure: OSError | None = None

    @property
    def is_stale(self) -> bool:
        """Return True if it failed, or is too old to be used."""
        return self._ended.is_set() and (self._failure is not None or monotonic() - self._ended_at > KEPT_S)

    def run(self) -> None:
        """Ask the resolver and keep its answer."""
        try:
            self._addresses = _ask(*self._place)
        except OSError as error:
            self._failure = error
        except Exception:  # noqa: BLE001 - a name that cannot be encoded; its caller waits for a failure
            self._failure = OSError("the name is invalid")
        finally:
            self._ended_at = monotonic()
            self._ended.set()

    def wait(self, seconds: float) -> Sequence[Address]:
        """Return the addresses. Raises TimeoutError, OSError."""
        if not self._ended.wait(seconds):
            raise TimeoutError("the name is not found in time")
        if self._failure is not None:
            raise self._failure
        return self._addresses


class _Lookups:
    """Keeps lookups under way, and late ones, by name: as many as nodes have names."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start from nothing: a forked process has none of its parent's threads."""
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], _Lookup] = {}

    def find(self, host: str, port: int, seconds: float) -> Sequence[Address]:
        """Return a name's addresses. Raises TimeoutError, OSError."""
        with self._lock:
            lookup = self._known.get((host, port))
            if lookup is None or lookup.is_stale:
                lookup = self._known[host, port] = _Lookup(host, port)
                try:
                    threading.Thread(target=lookup.run, name="lookup", daemon=True).start()
                except RuntimeError:
                    # The system has no thread left.
                    del self._known[host, port]
                    raise OSError("no thread for a lookup") from None
        addresses = lookup.wait(seconds)
        with self._lock:
            # An answer that came in time is not kept: the next connection asks again.
            if self._known.get((host, port)) is lookup:
                del self._known[host, port]
        return addresses


_lookups: Final = _Lookups()
os.register_at_fork(after_in_child=_lookups.forget)


def addresses_of(host: str, port: int, *, within_s: float) -> Sequence[Address]:
    """Return a few addresses of a host in the resolver's order. Raises TimeoutError, OSError."""
    try:
        return _ask(host, port, socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return _lookups.find(host, port, within_s)


def _ask(host: str, port: int, flags: int = 0) -> Sequence[Address]:
    addresses = socket.getaddrinfo(host, port, allowed_gai_family(), socket.SOCK_STREAM, flags=flags)
    return addresses[:ADDRESSES_MAX]

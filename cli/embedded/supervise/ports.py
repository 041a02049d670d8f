"""Finds a port for a server of a stack: a free one, then the same at every start. Used by cli.dev and tests."""

from __future__ import annotations

import atexit
import errno
import secrets
import socket
from collections import deque
from pathlib import Path
from typing import Final

from cli.embedded.supervise.files import read_json, write_json

LOOPBACK: Final = "127.0.0.1"
# Below what systems give to outgoing connections.
_SERVERS: Final = range(20_000, 32_768)
# What this process chose last: a server takes a moment to listen, and whoever chooses meanwhile has to see that.
_claims: Final[deque[socket.socket]] = deque(maxlen=64)


def free_port() -> int:
    """Return a port on which nobody listens now.

    Nor is any outgoing connection, nor another process that asks here, given it before a server has it.
    """
    while not (is_free(port := secrets.choice(_SERVERS)) and _claim(port)):
        pass
    return port


def _claim(port: int) -> bool:
    """Claim a port from all processes of this machine that ask as we do; False if another one has.

    An abstract socket is its name, and ends with its process. Where there is none (they are Linux's) nobody claims.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0sluice-port-{port}")
    except OSError as error:
        claim.close()
        return error.errno != errno.EADDRINUSE
    if len(_claims) == _claims.maxlen:
        _claims.popleft().close()
    _claims.append(claim)
    return True


@atexit.register
def _let_go() -> None:
    """Let go of what this process claimed: what ends with it unclosed is a warning each, in the output of tests."""
    for claim in _claims:
        claim.close()


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port: addresses in TIME_WAIT do not count, as servers reuse them."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


class KeptPorts:
    """The ports of one stack, by server name, kept in a file of its data folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ports: dict[str, int] = read_json(path, default={})

    def take(self, name: str, *, wanted: int = 0) -> int:
        """Return the wanted port, else the kept one if it is still free, else a free one, and keep it."""
        kept = self._ports.get(name, 0)
        port = wanted or (kept if kept and is_free(kept) else self._unused())
        self._ports[name] = port
        write_json(self._path, self._ports)
        return port

    def _unused(self) -> int:
        while (port := free_port()) in self._ports.values():
            pass
        return port

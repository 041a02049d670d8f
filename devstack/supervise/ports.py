"""Finds a port for a server of a stack: first a free one, then the same at every start. Used by `dev` and tests."""

from __future__ import annotations

import atexit
import errno
import secrets
import socket
from collections import deque
from pathlib import Path
from typing import Final

from devstack.supervise.files import read_json, write_json

LOOPBACK: Final = "127.0.0.1"
# Below the ports that systems give to outgoing connections.
_SERVERS: Final = range(20_000, 32_768)
# The last claims of this process: a server takes a moment to listen, and another process must not choose its port.
_claims: Final[deque[socket.socket]] = deque(maxlen=64)


def free_port() -> int:
    """Return a port that no process listens on now.

    Until a server has it, neither an outgoing connection nor another caller of this function gets it.
    """
    while not (is_free(port := secrets.choice(_SERVERS)) and _claim(port)):
        pass
    return port


def _claim(port: int) -> bool:
    """Claim a port among the processes of this machine that use this function; False if another process has claimed it.

    An abstract socket is only a name, and ends with its process. They exist on Linux; elsewhere nothing is claimed.
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
    """Close this process's claims: each unclosed one would be a warning in the output of tests."""
    for claim in _claims:
        claim.close()


def is_free(port: int) -> bool:
    """Return True if a server could listen on the port. Addresses in TIME_WAIT are free, since servers reuse them."""
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
        """Return the wanted port, else the stored one if it is still free, else a free one, and store it."""
        kept = self._ports.get(name, 0)
        port = wanted or (kept if kept and is_free(kept) else self._unused())
        self._ports[name] = port
        write_json(self._path, self._ports)
        return port

    def _unused(self) -> int:
        while (port := free_port()) in self._ports.values():
            pass
        return port

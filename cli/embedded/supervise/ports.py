"""Finds a port for a server of a stack: a free one, then the same at every start. Used by cli.dev and tests."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Final

from cli.embedded.supervise.files import read_json, write_json

LOOPBACK: Final = "127.0.0.1"
# Below what systems give to outgoing connections.
_SERVERS: Final = range(20_000, 32_768)


def free_port() -> int:
    """Return a port on which nobody listens now, and which no outgoing connection is given before a server has it."""
    while not is_free(port := secrets.choice(_SERVERS)):
        pass
    return port


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

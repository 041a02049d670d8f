"""Runs a simulated chain as a process; its file survives SIGKILL. The families' nodes say how to ask it."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict, Unpack

from chains.base import ProviderError
from core.catalogue.catalogue import Network
from devstack.plan import ROOT
from devstack.supervise.leash import Leash
from devstack.supervise.ports import LOOPBACK
from devstack.supervise.process import Child
from devstack.supervise.program import Program

ANSWER_LIMIT_S: Final = 2.0
FILE_NAME: Final = "chain.jsonl"


class Where(TypedDict):
    """The network that a node serves, its port, and the leash that ends its process."""

    network: Network
    port: int
    leash: Leash


class SimulatorNode(Program):
    """One chain. start() returns once it answers. Without a block time it makes blocks on request."""

    def __init__(self, program: Path, folder: Path, *, options: Sequence[str], **where: Unpack[Where]) -> None:
        network, port = where["network"], where["port"]
        super().__init__(f"chain:{network.code}")
        self.network = network.code
        self.url = f"http://{LOOPBACK}:{port}"
        file = str(folder / FILE_NAME)
        self._argv = [sys.executable, str(program), str(port), network.chain_identity, file, *options]
        self._folder = folder
        self._leash = where["leash"]

    @abstractmethod
    def _ask(self) -> None:
        """Ask the node anything. Raises ProviderError if it does not answer."""

    def is_ready(self) -> bool:
        """Return True if the node answers."""
        try:
            self._ask()
        except ProviderError:
            return False
        return True

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        env = {**self._leash.env, "PYTHONPATH": str(ROOT)}
        return Child(self.name, self._argv, env=env, log=self._folder / "node.log")

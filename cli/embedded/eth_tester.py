"""The node for machines where anvil cannot be had: cli.embedded.eth_tester_rpc as a program. Made by the stack.

It has no reorgs; what is paid there is paid all the same.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.embedded.evm_node import EvmNode
from cli.embedded.process import Child

if TYPE_CHECKING:
    from cli.embedded.leash import Leash

ROOT: Final = Path(__file__).parents[2]


class EthTester(EvmNode):
    """One chain in Python, with a block every second. Its file loses nothing but what waits for a block."""

    def __init__(self, folder: Path, *, network: str, chain_id: int, port: int, leash: Leash) -> None:
        super().__init__(network, port)
        self._folder = folder
        self._leash = leash
        self._options = ["--port", str(port), "--chain-id", str(chain_id), "--state", str(folder / "chain.sqlite")]

    def _spawn(self) -> Child:
        self._folder.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "cli.embedded.eth_tester_rpc", *self._options]
        return Child(self.name, argv, env=self._leash.env, log=self._folder / "node.log", cwd=str(ROOT))

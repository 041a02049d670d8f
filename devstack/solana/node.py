"""Runs a simulated Solana chain as a process. Made by family and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Unpack

from chains.net.json_rpc import JsonRpc
from devstack.simulated.node import ANSWER_LIMIT_S, SimulatorNode, Where

BLOCK_TIME_S: Final = 1.0
# One of this many slots has no block, as on the main net.
SKIP_EVERY: Final = 10


class SolanaNode(SimulatorNode):
    """One chain; see SimulatorNode."""

    def __init__(
        self, program: Path, folder: Path, *, block_time_s: float = BLOCK_TIME_S, **where: Unpack[Where]
    ) -> None:
        options = ["--block-time-s", str(block_time_s), "--skip-every", str(SKIP_EVERY)]
        super().__init__(program, folder, options=options, **where)

    def _ask(self) -> None:
        JsonRpc(self.url, timeout_s=ANSWER_LIMIT_S).call("getHealth", [], str)

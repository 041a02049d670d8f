"""Runs a simulated TRON chain as a process. Made by family and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Unpack

from chains.net.rest import RestNode
from devstack.simulated.node import ANSWER_LIMIT_S, SimulatorNode, Where

# A development chain confirms in fewer blocks than the main chain, so its blocks are also solid sooner.
SOLIDITY_LAG: Final = 1
BLOCK_TIME_S: Final = 1.0


class TronNode(SimulatorNode):
    """One chain; see SimulatorNode."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        block_time_s: float = BLOCK_TIME_S,
        solidity_lag: int = SOLIDITY_LAG,
        **where: Unpack[Where],
    ) -> None:
        options = ["--block-time-s", str(block_time_s), "--solidity-lag", str(solidity_lag)]
        super().__init__(program, folder, options=options, **where)

    def _ask(self) -> None:
        RestNode(self.url, timeout_s=ANSWER_LIMIT_S).ask("wallet/getnowblock", {}, dict[str, object])

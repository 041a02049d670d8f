"""Runs a simulated TON chain as a process. Made by family and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Unpack

from devstack.simulated.node import ANSWER_LIMIT_S, SimulatorNode, Where
from devstack.ton.client import Toncenter

# Two and a half times as long as on the main net.
BLOCK_TIME_S: Final = 1.0
SERVER: Final = Path(__file__).with_name("server.py")


class TonNode(SimulatorNode):
    """One chain; see SimulatorNode. emulator: the library that runs messages."""

    def __init__(
        self, emulator: Path, folder: Path, *, block_time_s: float = BLOCK_TIME_S, **where: Unpack[Where]
    ) -> None:
        options = ["--block-time-s", str(block_time_s), "--emulator", str(emulator)]
        super().__init__(SERVER, folder, options=options, **where)

    def _ask(self) -> None:
        Toncenter(self.url, timeout_s=ANSWER_LIMIT_S).ask("getMasterchainInfo")

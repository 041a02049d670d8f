"""What all development nodes of EVM chains have in common: an address on loopback that answers JSON-RPC."""

from __future__ import annotations

from typing import Final

from chains.base import ProviderError
from chains.rpc import JsonRpc
from cli.embedded.ports import LOOPBACK
from cli.embedded.program import Program

ANSWER_LIMIT_S: Final = 2.0


class EvmNode(Program):
    """One chain's only node."""

    def __init__(self, network: str, port: int) -> None:
        super().__init__(f"chain:{network}")
        self.network = network
        self.url = f"http://{LOOPBACK}:{port}"

    def is_ready(self) -> bool:
        """Return whether it answers."""
        try:
            JsonRpc(self.url, timeout_s=ANSWER_LIMIT_S).call("eth_chainId", [], str)
        except ProviderError:
            return False
        return True

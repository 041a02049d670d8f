"""Which program runs the chains of a stack: anvil where it can be had, else py-evm. Used by cli.embedded.stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.embedded.anvil import Anvil
from cli.embedded.anvil_binary import NamedAnvilMissingError, NoAnvilError, find_anvil
from cli.embedded.eth_tester import EthTester
from cli.embedded.process import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cli.embedded.evm_node import EvmNode
    from cli.embedded.leash import Leash
    from core.catalogue import Network


class Nodes:
    """Makes the nodes of one stack. find_anvil() comes first."""

    def __init__(self, folder: Path, *, leash: Leash, cache: Path) -> None:
        self._folder = folder
        self._leash = leash
        self._cache = cache
        self._anvil: Path | None = None
        self._why_none = ""

    def find_anvil(self, env: Mapping[str, str]) -> None:
        """Look for anvil and fetch it where that is possible. Raises NoAnvilError where ANVIL is a mistake."""
        try:
            self._anvil = find_anvil(env, self._cache)
        except NamedAnvilMissingError:
            raise
        except NoAnvilError as error:
            self._why_none = str(error)

    def describe(self) -> str:
        """Say what the chains run on."""
        if self._anvil is None:
            return f"absent, so py-evm runs the chains, without reorgs ({self._why_none})"
        return str(self._anvil)

    def make(self, network: Network, port: int) -> EvmNode:
        """Return the node of a network. Raises StartError where it has none."""
        if network.chain_id is None:
            raise StartError(f"{network.code} has no development chain")
        folder, code, number = self._folder / network.code, network.code, network.chain_id
        if self._anvil is None:
            return EthTester(folder, network=code, chain_id=number, port=port, leash=self._leash)
        return Anvil(self._anvil, folder, network=code, chain_id=number, port=port, leash=self._leash)

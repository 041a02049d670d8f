"""An EVM chain on which the catalogue's tokens exist and the buyer is rich. Made by cli.embedded.stack."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from chains.base import ProviderError
from chains.rpc import JsonRpc
from cli.embedded.anvil import Anvil
from cli.embedded.tokens import install_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cli.embedded.leash import Leash
    from cli.embedded.process import Child
    from core.catalogue import Network, Pair

COINS: Final = 1_000_000
WEI: Final = 10**18
TIMEOUT_S: Final = 10.0


class DevChain(Anvil):
    """Equips itself once for its life, and again if a kill took the youngest second of that life."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        network: Network,
        pairs: Sequence[Pair],
        buyer: str,
        port: int,
        leash: Leash,
    ) -> None:
        if network.chain_id is None:
            raise ValueError(f"{network.code} is no EVM chain")
        super().__init__(
            program, folder, network=network.code, chain_id=network.chain_id, port=port, leash=leash, block_time_s=1
        )
        self.tokens = {pair.currency: pair.contract for pair in pairs if pair.contract is not None}
        self._pairs = pairs
        self._buyer = buyer
        self._equipped = False

    def tick(self) -> None:
        """Look after the state, and after a restart see that tokens and coin are there."""
        super().tick()
        if not self._equipped:
            with contextlib.suppress(ProviderError):
                self.equip()

    def equip(self) -> None:
        """Install tokens and coin unless the chain has them. Raises ProviderError."""
        node = JsonRpc(self.url, timeout_s=TIMEOUT_S)
        if int(node.call("eth_getBalance", [self._buyer, "latest"], str), 16) == 0:
            install_tokens(self.url, self._pairs, self._buyer, COINS)
            # Last, because it is what says that all is there.
            node.call_or_none("anvil_setBalance", [self._buyer, hex(COINS * WEI)], object)
        self._equipped = True

    def _spawn(self) -> Child:
        self._equipped = False
        return super()._spawn()

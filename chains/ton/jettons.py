"""Knows the jettons that are offered, and the contracts that keep them. Used by chains.ton.credits and the spender.

An owner's jettons lie in a contract of its own, the jetton wallet. Its address is the hash of its first state, which
holds nothing but the code, the owner and the master, so that it is computed and never asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from chains.ton import boc
from chains.ton.cells import Cell, CellError
from chains.ton.slices import Builder, Slice
from chains.ton.wallet import StateInit

Form = Literal["plain", "governed"]
"""How a wallet keeps its data: as the standard's example (TEP-74), or with a status that the issuer can set."""

_STATUS_BITS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Jetton:
    """A jetton: the contract that issues it, and the code and form of its wallets."""

    master: str
    wallet_code: Cell
    form: Form

    def state(self, owner: str) -> StateInit:
        """Return the first state of an owner's wallet, which holds no jettons yet."""
        data = Builder()
        if self.form == "governed":
            data.uint(0, _STATUS_BITS)
        data.coins(0).address(owner).address(self.master)
        if self.form == "plain":
            data.ref(self.wallet_code)
        return StateInit(code=self.wallet_code, data=data.end())

    def wallet(self, owner: str) -> str:
        """Return the address of an owner's wallet."""
        return self.state(owner).address

    def owner(self, state: StateInit) -> str | None:
        """Return whose wallet a first state is; None if it is no wallet of this jetton, or holds anything."""
        if state.code != self.wallet_code:
            return None
        try:
            owner = self._owner(Slice(state.data))
            return owner if owner and self.state(owner).data == state.data else None
        except CellError:
            return None

    def _owner(self, data: Slice) -> str:
        if self.form == "governed":
            data.uint(_STATUS_BITS)
        data.coins()
        return data.address()


def is_wallet(address: str, code: Cell, data: Cell) -> bool:
    """Return True if a contract is the wallet of any jetton, offered or not.

    Its data begins with the balance, the owner and the master, behind a status in some forms. With neither balance nor
    status, it is the first state, whose hash the address is.
    """
    firsts = (_first(data, status_bits) for status_bits in (0, _STATUS_BITS))
    return any(first is not None and StateInit(code=code, data=first).address == address for first in firsts)


def _first(data: Cell, status_bits: int) -> Cell | None:
    try:
        parts = Slice(data)
        parts.uint(status_bits)
        parts.coins()
        owner, master = parts.address(), parts.address()
        if not owner or not master:
            return None
        first = Builder().uint(0, status_bits).coins(0).address(owner).address(master)
        return first.cells(parts.rest()).end()
    except CellError:
        return None


_USDT: Final = Jetton(
    master="0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe",
    # Refers to a library that the masterchain keeps: the code itself is not in it.
    wallet_code=boc.read_base64("te6ccgEBAQEAIwAIQgKPRS16Tf10BmtoI2UXclntBXNENb52tf1L1divK3w9aA=="),
    form="governed",
)
JETTONS: Final[Mapping[str, Jetton]] = MappingProxyType({_USDT.master: _USDT})
"""The jettons whose wallets are known, by their masters. A jetton without a row here cannot be offered."""

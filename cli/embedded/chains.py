"""Declares what a family brings to a machine's own stack, and finds it. Used by cli.embedded and cli.clock."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from cli.embedded.supervise.leash import Leash
from cli.embedded.supervise.program import Program
from core.catalogue.catalogue import Network, Pair

_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {"evm": "cli.embedded.evm.family", "bitcoin": "cli.embedded.bitcoin.family", "tron": "cli.embedded.tron.family"}
)


class NoProgramError(Exception):
    """A chain's program is not here and could not be fetched; the message says what was tried, and what helps."""


class DevelopmentChain(Program):
    """One network of a machine's own: it makes its blocks, keeps its state, and the buyer is rich on it."""

    network: str
    url: str
    # What the coins' contracts are, by currency; a family without contracts has none.
    tokens: Mapping[str, str]

    @abstractmethod
    def equip(self) -> None:
        """See that coins and buyer are there. Raises ProviderError."""

    @abstractmethod
    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send from the buyer, as any wallet would, and return the transaction's id. Raises ProviderError."""

    def scatter(self, *, to: str, units: int, count: int) -> str:
        """Send an address so many coins of so much in one transaction. LookupError where the chain has no coins."""
        raise LookupError(f"{self.network} has no coins: {count} of {units} cannot lie at {to}")

    @abstractmethod
    def balance(self, pair: Pair, address: str) -> int:
        """Return what an address holds of a coin, in the network's token units. Raises ProviderError."""

    @abstractmethod
    def stranger(self) -> str:
        """Return somebody's new address: nobody's key is needed to receive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a chain is to run, and for whom."""

    network: Network
    # The coins that are to exist on it.
    pairs: tuple[Pair, ...]
    # As Development.find found it.
    program: Path
    folder: Path
    port: int
    leash: Leash
    # 32 bytes in hex, of which a family makes the key that pays invoices.
    buyer_key: str = field(repr=False)


class ChainClock(Protocol):
    """The clock of one network's chain, moved from another process than the one that runs it."""

    def check(self) -> None:
        """See that the chain answers. Raises ProviderError."""
        ...

    def advance(self, target_s: int) -> bool:
        """Bring the chain to a moment, in Unix seconds, and make a block there; False for a chain that is real.

        By its newest block and not by a fixed step: a reorg may have taken the blocks that an earlier step moved it by.
        Raises ProviderError.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Development:
    """All that a family brings to run, pay on and move its chains, as its module exports it."""

    # What the chain is called that runs here.
    name: str
    # From the environment and the folder of what was downloaded before. Raises NoProgramError.
    find: Callable[[Mapping[str, str], Path], Path]
    chain: Callable[[Site], DevelopmentChain]
    # Of a URL, and how many seconds an answer may take.
    clock: Callable[[str, float], ChainClock]


def is_developed(family: str) -> bool:
    """Return whether a family has a development chain."""
    return family in _MODULES


@functools.cache
def development(family: str) -> Development:
    """Return what a family brings, imported at first use. LookupError where it has no development chain."""
    if family not in _MODULES:
        raise LookupError(f"{family} networks have no development chain")
    found: Development = import_module(_MODULES[family]).DEVELOPMENT
    return found

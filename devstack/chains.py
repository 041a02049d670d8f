"""Declares the parts of a development chain, and finds those of a family. Used by devstack and devstack.clock."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from core.catalogue.catalogue import Network, Pair
from devstack.supervise.leash import Leash
from devstack.supervise.program import Program

_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "evm": "devstack.evm.family",
        "bitcoin": "devstack.bitcoin.family",
        "tron": "devstack.tron.family",
        "solana": "devstack.solana.family",
        "ton": "devstack.ton.family",
    }
)


class NoProgramError(Exception):
    """A chain's program is missing and could not be fetched; the message names the attempts and the remedy."""


class DevelopmentChain(Program):
    """The chain of one network on this machine: it makes blocks, keeps its state, and has a rich buyer."""

    network: str
    url: str
    # The addresses of the coins' contracts, by currency; empty for a family without contracts.
    tokens: Mapping[str, str]

    @abstractmethod
    def equip(self) -> None:
        """Check that coins and buyer are there, and make them if not. Raises ProviderError."""

    @abstractmethod
    def pay(self, pair: Pair, *, to: str, units: int) -> str:
        """Send from the buyer like any wallet; return the transaction's id. Raises ProviderError."""

    def scatter(self, *, to: str, units: int, count: int) -> str:
        """Send `count` coins of `units` each in one transaction. LookupError if the chain's money is not in coins."""
        raise LookupError(f"{self.network} has no coins: {count} of {units} cannot lie at {to}")

    @abstractmethod
    def balance(self, pair: Pair, address: str) -> int:
        """Return an address's balance of a coin, in the network's token units. Raises ProviderError."""

    @abstractmethod
    def stranger(self) -> str:
        """Return a new address whose key is discarded: receiving needs none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The folder, port and secrets with which a chain runs."""

    network: Network
    # The coins that have to exist on it.
    pairs: tuple[Pair, ...]
    # The result of Development.find.
    program: Path
    folder: Path
    port: int
    leash: Leash
    # 32 bytes in hex, from which a family makes the buyer's key.
    buyer_key: str = field(repr=False)


class ChainClock(Protocol):
    """The clock of one network's chain, moved by another process than the one that runs it."""

    def check(self) -> None:
        """Check that the chain answers. Raises ProviderError."""
        ...

    def advance(self, target_s: int) -> bool:
        """Move the chain to a time in Unix seconds and make a block there. Return False for a real chain.

        The step counts from the newest block: a reorg may have removed the blocks of an earlier step.
        Raises ProviderError.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Development:
    """All parts with which a family's chains are run, paid on and moved. Its module exports one."""

    # The name of the chain that runs here.
    name: str
    # Takes the environment and the folder of earlier downloads. Raises NoProgramError.
    find: Callable[[Mapping[str, str], Path], Path]
    chain: Callable[[Site], DevelopmentChain]
    # Takes a URL and the longest wait for an answer, in seconds.
    clock: Callable[[str, float], ChainClock]


def is_developed(family: str) -> bool:
    """Return True if a family has a development chain."""
    return family in _MODULES


@functools.cache
def development(family: str) -> Development:
    """Return a family's parts, imported at first use. Raises LookupError if it has no development chain."""
    if family not in _MODULES:
        raise LookupError(f"{family} networks have no development chain")
    loaded: Development = import_module(_MODULES[family]).DEVELOPMENT
    return loaded

"""Holds a block as the scan read it, for the observers of blocks. Used by the actors that scan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from actors.context import Context
from chains.base import BlockScan, Transfer
from chains.family import Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.deposits import rows as deposits
from models.deposits.rows import Owner, OwnerKind
from models.invoices.quoting import Targets
from models.spends import coins, unexplained
from models.spends.unexplained import UnexplainedRow
from models.treasury import addresses as treasury_addresses


class Matching:
    """Finds our addresses and coins, as chains.base.Ours, and keeps their owners. Made again for every scan step.

    On networks with unowned coins, addresses that were given to no owner count too. A database that lost its last
    commits no longer knows their owners, and only their coins lead to the payouts that spent them.
    """

    def __init__(self, network: Network) -> None:
        self._code, self._family = network.code, network.family
        self._counts_unowned = traits_of(network).has_unowned_coins
        self.hot = treasury_addresses.address(network.code, "hot")
        self.owners: dict[str, Owner] = {}
        self.targets = Targets()

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        """Return those of the addresses that are ours."""
        owners, unowned = deposits.matched(self._family, seen)
        self.owners.update(owners)
        mine = [*owners, *unowned] if self._counts_unowned else [*owners]
        return [*mine, self.hot] if self.hot is not None and self.hot in seen else mine

    def keys(self, seen: Collection[str]) -> Collection[str]:
        """Return those of the addresses whose keys are ours: of the pool with or without an owner, and the hot one."""
        return unexplained.own(self._code, self._family, seen)

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return those of the coins that are ours."""
        return coins.ours(self._code, seen)

    def of(self, transfers: Iterable[Transfer]) -> set[tuple[OwnerKind, UUID]]:
        """Return the owners of these transfers, without the gateway itself."""
        owners = [self.owners[t.recipient] for t in transfers if t.recipient in self.owners]
        return {(owner.kind, owner.id) for owner in owners}


class Left(NamedTuple):
    """Transactions of our keys in one block, where counters show departures."""

    # The unexplained ones, and the ids of those with a row.
    unexplained: tuple[UnexplainedRow, ...] = ()
    known: tuple[str, ...] = ()


NOTHING: Final = Left()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A block as one provider showed it."""

    ctx: Context
    network: Network
    chain: Reader
    scan: BlockScan
    ours: Matching
    left: Left = NOTHING
    # Our attempts that an earlier reading showed in this block, and that two providers at least lack there.
    lacking: tuple[str, ...] = ()
    # True if the scan had recorded the block before.
    is_late: bool = False


def _keep(_network: Network) -> None:
    """Some observers keep their rows of blocks that a reorg took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Records one kind of finding of each block that the scan reads."""

    # Records what a block has; returns the number of new deposits and top-ups. Safe to run twice. Called in the
    # transaction that records the block.
    note: Callable[[Reading], int]
    # Returns whether a second reading of a block has anything to note.
    concerns: Callable[[Reading], bool]
    # Undoes note() for blocks above the cursor. Called in the transaction that moves the cursor back.
    take_back: Callable[[Network], None] = _keep

"""Holds the simulator's accounts after a block. Changed by rules and acts, read by queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from devstack.tron.machine import EMPTY, Machine

FREE_NET: Final = 600
DAY_MS: Final = 86_400_000
ENERGY_PRICE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The keys whose signatures move an account's coins."""

    threshold: int
    # By the key's address, 20 bytes.
    weights: Mapping[bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The used part of a resource that returns within a day."""

    units: int = 0
    at_ms: int = 0

    def left(self, now_ms: int) -> int:
        """Return the usage that still counts; it falls evenly to zero within a day."""
        return self.units * max(0, DAY_MS - (now_ms - self.at_ms)) // DAY_MS

    def more(self, units: int, now_ms: int) -> Usage:
        """Return the usage with this many more units."""
        return Usage(units=self.left(now_ms) + units, at_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An activated account."""

    created_ms: int
    owner: Permission
    active: Permission
    net: Usage = Usage()
    # The energy for each day, from staking.
    energy_limit: int = 0
    energy: Usage = Usage()
    # TRC-10 tokens, by name.
    assets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A smart contract."""

    name: str
    # The additional energy of a busy contract, in percent.
    penalty_pct: int = 0


@dataclass(slots=True, kw_only=True)
class World:
    """The state after a block. Coins and storage are in the machine, under their root."""

    machine: Machine
    root: bytes = EMPTY
    accounts: dict[bytes, Account] = field(default_factory=dict)
    contracts: dict[bytes, Contract] = field(default_factory=dict)
    energy_price: int = ENERGY_PRICE

    def copy(self) -> World:
        """Return an independent copy."""
        return replace(self, accounts=dict(self.accounts), contracts=dict(self.contracts))

    def balance(self, address: bytes) -> int:
        """Return an address's TRX, in sun."""
        return self.machine.balance(self.root, address)

    def add(self, changes: Mapping[bytes, int]) -> None:
        """Add these amounts to the balances of addresses."""
        self.root = self.machine.add(self.root, changes)

    def change(self, address: bytes, **values: object) -> None:
        """Change fields of an account."""
        self.accounts[address] = replace(self.accounts[address], **values)  # type: ignore[arg-type]

    def activate(self, address: bytes, now_ms: int) -> None:
        """Make an account, controlled by its own key, unless it exists."""
        if address not in self.accounts:
            own = Permission(threshold=1, weights={address: 1})
            self.accounts[address] = Account(created_ms=now_ms, owner=own, active=own)

"""Holds what the simulator knows of accounts after a block. Changed by rules and acts, read by queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cli.embedded.tron.machine import EMPTY, Machine

FREE_NET: Final = 600
DAY_MS: Final = 86_400_000
ENERGY_PRICE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Whose signatures move an account's coins."""

    threshold: int
    # By 20 bytes.
    weights: Mapping[bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was used of something that comes back within a day."""

    units: int = 0
    at_ms: int = 0

    def left(self, now_ms: int) -> int:
        """Return what of it is not yet back."""
        return self.units * max(0, DAY_MS - (now_ms - self.at_ms)) // DAY_MS

    def more(self, units: int, now_ms: int) -> Usage:
        """Return it with more used."""
        return Usage(units=self.left(now_ms) + units, at_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One that was activated."""

    created_ms: int
    owner: Permission
    active: Permission
    net: Usage = Usage()
    # What staking gives it each day.
    energy_limit: int = 0
    energy: Usage = Usage()
    # TRC-10 tokens, by name.
    assets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A smart contract."""

    name: str
    # So much more energy it takes, in percent, for it is busy.
    penalty_pct: int = 0


@dataclass(slots=True, kw_only=True)
class World:
    """Everything after a block. Coins and storage are the machine's, by their root."""

    machine: Machine
    root: bytes = EMPTY
    accounts: dict[bytes, Account] = field(default_factory=dict)
    contracts: dict[bytes, Contract] = field(default_factory=dict)
    energy_price: int = ENERGY_PRICE

    def copy(self) -> World:
        """Return another that changes alone."""
        return replace(self, accounts=dict(self.accounts), contracts=dict(self.contracts))

    def balance(self, address: bytes) -> int:
        """Return an address's TRX, in sun."""
        return self.machine.balance(self.root, address)

    def add(self, changes: Mapping[bytes, int]) -> None:
        """Change what addresses hold by so much."""
        self.root = self.machine.add(self.root, changes)

    def change(self, address: bytes, **values: object) -> None:
        """Change what is known of an account."""
        self.accounts[address] = replace(self.accounts[address], **values)  # type: ignore[arg-type]

    def activate(self, address: bytes, now_ms: int) -> None:
        """See that an account is there, which its own key commands."""
        if address not in self.accounts:
            own = Permission(threshold=1, weights={address: 1})
            self.accounts[address] = Account(created_ms=now_ms, owner=own, active=own)

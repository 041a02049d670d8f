"""Makes the simulator's blocks. Called by simulator."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from solders.account import Account
from solders.hash import Hash
from solders.pubkey import Pubkey

from devstack.solana.engine import Outcome
from devstack.solana.transactions import Signed

# As on the main net, slots are millions ahead of the blocks, for many slots had none.
FIRST_SLOT: Final = 460_000_000
FIRST_HEIGHT: Final = 438_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Included:
    """A transaction in a block, with its effect."""

    signed: Signed
    outcome: Outcome


@dataclass(slots=True, kw_only=True)
class Block:
    """A block. before: the accounts that it and the acts after it changed, as they were; None once forgotten."""

    slot: int
    height: int
    parent_slot: int
    hash: str
    parent_hash: str
    time_s: int
    included: tuple[Included, ...] = ()
    # The least price of a compute unit by writable account, and under "" for all.
    floor: Mapping[str, int] = field(default_factory=dict)
    before: dict[Pubkey, Account | None] | None = field(default_factory=dict)


def block_hash(parent: Block, *, slot: int, fork: int, signatures: list[str]) -> str:
    """Return the hash of the next block. fork: the number of reorgs so far, so that no two blocks are equal."""
    digest = hashlib.sha256(f"{parent.hash} {slot} {fork} {' '.join(signatures)}".encode()).digest()
    return str(Hash.from_bytes(digest))


def genesis(identity: str, time_s: int) -> Block:
    """Return the first block that this chain keeps."""
    parent = Block(
        slot=FIRST_SLOT - 1, height=FIRST_HEIGHT - 1, parent_slot=FIRST_SLOT - 2, hash=identity, parent_hash=identity,
        time_s=0,
    )  # fmt: skip
    return Block(
        slot=FIRST_SLOT,
        height=FIRST_HEIGHT,
        parent_slot=parent.slot,
        hash=block_hash(parent, slot=FIRST_SLOT, fork=0, signatures=[]),
        parent_hash=identity,
        time_s=time_s,
    )

"""Shapes shards, their blocks and those of the masterchain. Used by simulator.

The accounts of the basechain are divided into shards by the first bits of their addresses. A shard is a number of 64
bits: these bits, a one, and zeros. Each has its own blocks; a block of the masterchain names the newest of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from chains.ton import boc
from chains.ton.cells import Cell
from chains.ton.transactions import Transaction

WHOLE: Final = 1 << 63
"""The shard of all accounts."""
BASECHAIN: Final = 0
MASTERCHAIN: Final = -1

_BITS: Final = 1 << 64


class BlockId(NamedTuple):
    """The place of a block, and a hash of its content."""

    workchain: int
    shard: int
    seqno: int
    hash: bytes


class Next(NamedTuple):
    """The next block of a shard: after which blocks (two after a merge), and whether it is the first after a split."""

    shard: int
    previous: tuple[BlockId, ...]
    split: bool = False

    @property
    def is_new(self) -> bool:
        """Return True if the shard has no block of its own yet."""
        return self.split or len(self.previous) > 1

    def json(self) -> list[Any]:
        """Return it for the journal."""
        return [self.shard, [[*each[:3], each.hash.hex()] for each in self.previous], self.split]

    @classmethod
    def of(cls, kept: list[Any]) -> Self:
        """Return it from the journal."""
        shard, previous, split = kept
        ids = tuple(BlockId(workchain, of, seqno, bytes.fromhex(text)) for workchain, of, seqno, text in previous)
        return cls(shard, ids, split)


class Ran(NamedTuple):
    """A transaction, and its own cell."""

    transaction: Transaction
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardBlock:
    """A block of one shard, with its transactions in the order of accounts and their logical times."""

    id: BlockId
    coming: Next
    time: int
    # The block of the masterchain that was the newest.
    master_seqno: int
    ran: tuple[Ran, ...]
    # Above the logical times of all its transactions, and no less than that of a block before it.
    end_lt: int

    def json(self) -> dict[str, Any]:
        """Return it for the journal; its time is its master block's."""
        return {"coming": self.coming.json(), "ran": [boc.write_base64(each.cell) for each in self.ran]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterBlock:
    """A block of the masterchain, and the newest block of each shard."""

    id: BlockId
    previous: BlockId
    time: int
    shards: tuple[BlockId, ...]


def is_within(shard: int, address: str) -> bool:
    """Return True if an account of the basechain belongs to a shard."""
    first = int(address.partition(":")[2][:16], 16)
    lowest = shard & -shard
    return (first ^ shard) & ~(2 * lowest - 1) & (_BITS - 1) == 0


def halves(shard: int) -> tuple[int, int]:
    """Return the two shards into which one splits."""
    half = (shard & -shard) >> 1
    return shard - half, shard + half


def parent(shard: int) -> int:
    """Return the shard into which one merges with its sibling."""
    lowest = shard & -shard
    return (shard - lowest | lowest << 1) & (_BITS - 1)


def block_id(workchain: int, shard: int, seqno: int, content: Sequence[bytes]) -> BlockId:
    """Return a block's id, whose hash depends on all of its content."""
    digest = hashlib.sha256(f"{workchain}:{shard}:{seqno}:".encode() + b"".join(content)).digest()
    return BlockId(workchain, shard, seqno, digest)

"""Makes the simulator's blocks, and their ids from their headers. Called by simulator."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from devstack.tron.rules import Info
from devstack.tron.wire import PREFIX, Signed, field
from devstack.tron.world import World

VERSION: Final = 31
HEIGHT_DIGITS: Final = 16
NO_PARENT: Final = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Included:
    """A transaction in a block, with its effect."""

    signed: Signed
    txid: str
    info: Info


@dataclass(slots=True, kw_only=True)
class Block:
    """A block. world is the state after it; None once the chain can no longer go back there."""

    height: int
    id: str
    parent: str
    root: str
    time_ms: int
    witness: bytes
    included: tuple[Included, ...]
    world: World | None


def make_block(parent: Block, *, time_ms: int, fork: int, included: tuple[Included, ...], world: World) -> Block:
    """Return the next block. fork: the number of reorgs so far, so that no two blocks are equal."""
    witness = hashlib.sha256(f"witness {fork}".encode()).digest()[:20]
    height, root = parent.height + 1, _merkle_root([one.signed.whole for one in included])
    header = (
        field(1, time_ms)
        + field(2, bytes.fromhex(root))
        + field(3, bytes.fromhex(parent.id))
        + field(7, height)
        + field(9, PREFIX + witness)
        + field(10, VERSION)
    )
    digest = hashlib.sha256(header).hexdigest()
    return Block(
        height=height,
        id=f"{height:0{HEIGHT_DIGITS}x}{digest[HEIGHT_DIGITS:]}",
        parent=parent.id,
        root=root,
        time_ms=time_ms,
        witness=witness,
        included=included,
        world=world,
    )


def genesis(identity: str, world: World) -> Block:
    """Return the first block, whose id identifies the chain."""
    return Block(
        height=0, id=identity, parent=NO_PARENT, root=NO_PARENT, time_ms=0, witness=bytes(20), included=(), world=world
    )


def _merkle_root(leaves: list[bytes]) -> str:
    level = [hashlib.sha256(leaf).digest() for leaf in leaves] or [bytes(32)]
    while len(level) > 1:
        pairs = [b"".join(level[place : place + 2]) for place in range(0, len(level), 2)]
        level = [hashlib.sha256(pair).digest() for pair in pairs]
    return level[0].hex()

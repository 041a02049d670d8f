"""Returns scanned blocks from the rows that the scan keeps. Used by the actors that read such a block again.

A provider that shows another block at the height of a scanned one would keep it from being read.
"""

from __future__ import annotations

from chains.base import Block
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors
from models.deposits.rows import ChainBlock


def block(network: Network, chain: Reader, height: int, block_hash: str) -> Block | None:
    """Return a block that the scan has read; None if the chain has another one there.

    No provider is asked if the scan keeps a block of that height. Otherwise raises ChainError.
    """
    row = cursors.kept_block(network.code, height)
    if row is None:
        return agreed(chain, height, block_hash=block_hash)
    return _of(row) if row.hash == block_hash else None


def agreed(chain: Reader, height: int, *, block_hash: str = "") -> Block | None:
    """Return the block of a height that more providers show than another one; None without such a block.

    block_hash: of the only block that is wanted. A minority rests, so that another provider is asked next. Raises
    ChainError.
    """
    for _ in range(chain.providers):
        shown = chain.block(height)
        if not isinstance(shown, Block):
            return None
        wanted = block_hash or shown.hash
        voices = chain.agreement(height, wanted)
        is_agreed = voices.same > voices.other
        if is_agreed and shown.hash == wanted:
            return shown
        if block_hash and not is_agreed:
            return None
    return None


def _of(row: ChainBlock) -> Block:
    return Block(
        height=row.height,
        hash=row.hash,
        parent_height=row.parent_height,
        parent_hash=row.parent_hash,
        time=row.block_time,
        count=row.block_count,
    )

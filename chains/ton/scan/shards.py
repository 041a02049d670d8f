"""Finds the blocks of shards that one block of the masterchain adds. Called by chains.ton.scan.block.

A block of the masterchain names the newest block of each shard. Those that it adds lie between these and the ones that
the master block before it named: each block refers to the one before it, the first after a split to its parent's, and
the first after a merge to both halves'. All accounts are covered at both ends, and each way back ends at a named block.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from chains.base import ContradictionError
from chains.ton import nodes
from chains.ton.nodes import Toncenter
from chains.ton.wire import BlockId

# Shards make a few blocks for each of the masterchain.
BLOCKS_MAX: Final = 4_096

_ALL: Final = 1 << 64


def added(node: Toncenter, before: Collection[BlockId], after: Iterable[BlockId]) -> Sequence[BlockId]:
    """Return the blocks between those that two successive master blocks name, the earliest first.

    Raises ContradictionError if one between is left out, or belongs to other shards.
    """
    known, ended, between = {block.shard: block for block in before}, set[BlockId](), set[BlockId]()
    lowest, ahead = min(block.seqno for block in before), list(after)
    while ahead:
        block = ahead.pop()
        if known.get(block.shard) == block:
            ended.add(block)
        elif block not in between:
            if block.seqno <= lowest or len(between) == BLOCKS_MAX:
                raise ContradictionError("the blocks of shards lead past those of the master block before")
            between.add(block)
            ahead += _parents(node, block, known.get(block.shard))
    if ended != set(before):
        raise ContradictionError("the blocks of shards do not follow those of the master block before")
    return sorted(between, key=lambda block: (block.seqno, block.prefix))


def _parents(node: Toncenter, block: BlockId, before: BlockId | None) -> Sequence[BlockId]:
    if before is not None and block.seqno == before.seqno + 1:
        # A split and a merge between would take two numbers, so that this one follows the known one.
        return (before,)
    parents = nodes.shard_header(node, block).prev_blocks
    if max((parent.seqno for parent in parents), default=-1) != block.seqno - 1:
        raise ContradictionError(f"a block before {block.seqno} of shard {block.shard} is left out")
    if sorted(parent.prefix for parent in parents) not in _shapes(block.prefix):
        raise ContradictionError(f"block {block.seqno} of shard {block.shard} follows blocks of other shards")
    return parents


def _shapes(prefix: int) -> Sequence[list[int]]:
    """Return the shards that the blocks before a shard's block may have."""
    lowest = prefix & -prefix
    shapes, half = [[prefix]], lowest >> 1
    if half:
        shapes.append([prefix - half, prefix + half])
    if prefix != 1 << 63:
        shapes.append([(prefix - lowest | lowest << 1) & (_ALL - 1)])
    return shapes

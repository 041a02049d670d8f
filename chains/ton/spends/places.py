"""Finds the master block by which some transactions are all in the chain. Called by fate.

A shard's blocks divide its logical time, so that the newest one that a master block names says by its end whether a
transaction is in it or before it. No node has to keep old states for that.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from chains.base import Block
from chains.net import several
from chains.ton import nodes, wire
from chains.ton.nodes import Toncenter
from chains.ton.transactions import Transaction

# Steps back from the head, each this many times as long as the one before.
STEP_FACTOR: Final = 4


def first_with(node: Toncenter, wanted: Sequence[Transaction]) -> Block | None:
    """Return the first master block by which the chain has all of these; None if it has not all of them yet."""
    newest = nodes.head(node)
    if _missing(node, newest, wanted):
        return None
    first, missing = 0, wanted
    while missing:
        # By the latest of them alone, since each step asks for the shards of all that are looked for.
        latest = max(missing, key=lambda each: each.now)
        first = _first_with(node, latest, newest, after=first)
        missing = _missing(node, first, [each for each in missing if each is not latest])
    return nodes.header(node, first)


def missing(node: Toncenter, wanted: Sequence[Transaction]) -> frozenset[bytes]:
    """Return the hashes of those transactions that the newest master block does not have yet."""
    return frozenset(each.hash for each in _missing(node, nodes.head(node), wanted))


def first_of(having: int, has: Callable[[int], bool], *, after: int = 0) -> int:
    """Return the first master block of which something is true that stays true, and is true of a known one.

    after: a block before the first one, or the first one itself.
    """
    return _bisected(_lacking(having, has, after), having, has)


def end_lt(node: Toncenter, seqno: int, address: str) -> int:
    """Return the logical time at which a master block ends in an account's shard: later ones are in later blocks."""
    return _end_lt(node, shard_of(node, seqno, address))


def shard_of(node: Toncenter, seqno: int, address: str) -> wire.BlockId:
    """Return the newest block of an account's shard that a master block names."""
    return wire.covering(nodes.tops(node, seqno), address)


def _first_with(node: Toncenter, wanted: Transaction, newest: int, *, after: int) -> int:
    return first_of(newest, lambda seqno: not _missing(node, seqno, [wanted]), after=after)


def _lacking(having: int, has: Callable[[int], bool], after: int) -> int:
    """Return a block of which it is not true yet, or the one before all that may be the first."""
    step = 1
    while (seqno := having - step) > max(0, after - 1):
        if not has(seqno):
            return seqno
        step *= STEP_FACTOR
    return max(0, after - 1)


def _bisected(lacking: int, having: int, has: Callable[[int], bool]) -> int:
    while having - lacking > 1:
        middle = (lacking + having) // 2
        lacking, having = (lacking, middle) if has(middle) else (middle, having)
    return having


def _missing(node: Toncenter, seqno: int, wanted: Sequence[Transaction]) -> list[Transaction]:
    """Return those of some transactions that a master block does not have yet. Asks once for each of their shards."""
    if not wanted:
        return []
    tops = nodes.tops(node, seqno)
    there = [wire.covering(tops, each.address) for each in wanted]
    ends = several.every(partial(_end_lt, node), dict.fromkeys(there))
    return [each for each, top in zip(wanted, there, strict=True) if each.lt >= ends[top]]


def _end_lt(node: Toncenter, top: wire.BlockId) -> int:
    return wire.number(nodes.shard_header(node, top).end_lt)

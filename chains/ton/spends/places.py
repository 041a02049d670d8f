"""Finds the master block by which some transactions are all in the chain. Called by fate.

A shard's blocks divide its logical time, so that the newest one that a master block names says by its end whether a
transaction is in it or before it. No node has to keep old states for that.
"""

from collections.abc import Callable, Collection
from typing import Final

from chains.base import Block, ProviderError
from chains.ton import nodes, wire
from chains.ton.nodes import Toncenter
from chains.ton.transactions import Transaction

# Steps back from the head, each this many times as long as the one before.
STEP_FACTOR: Final = 4
_SHARDS: Final = 1 << 64


def first_with(node: Toncenter, wanted: Collection[Transaction]) -> Block | None:
    """Return the first master block by which the chain has all of these; None if it has not all of them yet."""

    def has_all(seqno: int) -> bool:
        return _has_all(node, seqno, wanted)

    newest = nodes.head(node)
    return nodes.header(node, first_of(newest, has_all)) if has_all(newest) else None


def first_of(having: int, has: Callable[[int], bool]) -> int:
    """Return the first master block of which something is true that stays true, and is true of a known one."""
    return _bisected(_lacking(having, has), having, has)


def covers(prefix: int, address: str) -> bool:
    """Return True if an account belongs to a shard: these first bits, a one, and zeros."""
    first = int(address.partition(":")[2][:16], 16)
    lowest = prefix & -prefix
    return (first ^ prefix) & ~(2 * lowest - 1) & (_SHARDS - 1) == 0


def shard_of(node: Toncenter, seqno: int, address: str) -> wire.BlockId:
    """Return the newest block of an account's shard that a master block names."""
    for identity in nodes.shards(node, seqno):
        if identity.workchain == wire.BASECHAIN and covers(identity.prefix, address):
            return identity
    raise ProviderError(f"master block {seqno} names no shard of {address}")


def _lacking(having: int, has: Callable[[int], bool]) -> int:
    """Return a block of which it is not true yet; of 0, the first, it never is."""
    step = 1
    while (seqno := having - step) > 0:
        if not has(seqno):
            return seqno
        step *= STEP_FACTOR
    return 0


def _bisected(lacking: int, having: int, has: Callable[[int], bool]) -> int:
    while having - lacking > 1:
        middle = (lacking + having) // 2
        lacking, having = (lacking, middle) if has(middle) else (middle, having)
    return having


def _has_all(node: Toncenter, seqno: int, wanted: Collection[Transaction]) -> bool:
    # One question for each shard, whatever the number of transactions.
    latest = dict[wire.BlockId, int]()
    named = [each for each in nodes.shards(node, seqno) if each.workchain == wire.BASECHAIN]
    for transaction in wanted:
        identity = next((each for each in named if covers(each.prefix, transaction.address)), None)
        if identity is None:
            raise ProviderError(f"master block {seqno} names no shard of {transaction.address}")
        latest[identity] = max(latest.get(identity, 0), transaction.lt)
    return all(lt < wire.number(nodes.shard_header(node, each).end_lt) for each, lt in latest.items())

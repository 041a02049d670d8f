"""Moves a scan back to a block that an operator names. Used by `sluice scan rewind`.

Deposits above that block are taken back as by a reorg, and read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from actors.context import Context
from actors.scan import reorgs
from chains.base import Block, witnesses_needed
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors, scans
from models.deposits.cursors import Cursor

log = structlog.get_logger()

# The newest deposit up to the block is compared with the chain if it is in one of this many blocks.
COMPARED_BLOCKS: Final = 10_000


class RewindRefusedError(Exception):
    """The scan is not moved; the message is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """A scan that was moved back. deposits: those above the block, each taken back until it is read again."""

    from_height: int
    to_height: int
    block_hash: str
    deposits: int


def rewind(ctx: Context, network: Network, chain: Reader, height: int, *, is_forced: bool) -> Rewound:
    """Move a scan back to the block that the providers have at a height, and end its halt.

    Raises RewindRefusedError, and ChainError if no provider answers. is_forced: also while the scan is running, with
    credited deposits above the block, by one provider's answer while the others are silent, and below the first scanned
    block if the chain lacks that one.
    """
    cursor = _cursor_above(network, chain, height, is_forced=is_forced)
    if not is_forced:
        _check_need(network, height)
    block = chain.block(height)
    if not isinstance(block, Block):
        raise RewindRefusedError(f"no provider of {network.code} has a block {height}; name another height")
    is_agreed = _is_agreed(network, chain, block)
    if not is_agreed and not is_forced:
        raise RewindRefusedError(f"one provider alone has this block {height}; look at the others, or add --force")
    _check_below_fork(network, chain, block)
    count = scans.deposits_above(network.code, height)
    if not _move(ctx, network, chain, cursor, block, is_agreed=is_agreed):
        raise RewindRefusedError(f"the scan of {network.code} moved in between; try again")
    log.warning(
        "scan.rewound", network=network.code, from_height=cursor.height, height=height, block_hash=block.hash,
        deposits=count, is_forced=is_forced,
    )  # fmt: skip
    return Rewound(from_height=cursor.height, to_height=height, block_hash=block.hash, deposits=count)


def _cursor_above(network: Network, chain: Reader, height: int, *, is_forced: bool) -> Cursor:
    cursor = cursors.read(network.code)
    if cursor is None:
        raise RewindRefusedError(f"the scan of {network.code} has not begun")
    if height >= cursor.height:
        raise RewindRefusedError(f"{network.code} is scanned up to block {cursor.height}; name a lower one")
    first = cursors.started_height(network.code)
    if first is not None and height < first and not (is_forced and _is_gone(network, chain, first)):
        raise RewindRefusedError(f"the scan of {network.code} began at block {first}; name that or a higher one")
    return cursor


def _is_gone(network: Network, chain: Reader, first: int) -> bool:
    """Return whether the chain lacks the first scanned block, or has another one: a provider invented it."""
    block, kept = chain.block(first), cursors.kept_hash(network.code, first)
    return block is None or (kept is not None and not reorgs.is_same(block, kept))


def _is_agreed(network: Network, chain: Reader, block: Block) -> bool:
    """Return whether enough providers have a block. Raises RewindRefusedError if others have another one."""
    if chain.providers == 1:
        return True
    ours = chain.agreement(block.height, block.hash)
    if ours.other and ours.same <= ours.other:
        raise RewindRefusedError(
            f"the providers of {network.code} have different blocks {block.height}; take the one that is wrong out of"
            " the settings"
        )
    return ours.same >= witnesses_needed(chain.providers)


def _check_below_fork(network: Network, chain: Reader, block: Block) -> None:
    """Refuse a block above the fork of chain and scan: the blocks between would never be read."""
    kept = cursors.kept_hash(network.code, block.height)
    if kept is not None:
        if kept != block.hash:
            raise RewindRefusedError(
                f"the scan has another block {block.height} than the chain; name a lower one, at or below the last"
                f" that both have ({network.code} keeps blocks from {cursors.kept_from(network.code)} on)"
            )
        return
    newest = scans.newest_deposit_block(network.code, low=block.height - COMPARED_BLOCKS, high=block.height)
    if newest is not None and not reorgs.is_same(chain.block(newest[0]), newest[1]):
        raise RewindRefusedError(
            f"the chain does not have the block {newest[0]} of a deposit of {network.code}; name a lower one"
        )


def _check_need(network: Network, height: int) -> None:
    """Refuse a rewind if the scan is not halted, or if credited money would be taken back."""
    state = scans.state(network.code)
    if state is None or not state.halted_reason:
        raise RewindRefusedError(f"the scan of {network.code} is not halted; add --force to move it all the same")
    credited = scans.deposits_above(network.code, height, status="credited")
    if credited:
        raise RewindRefusedError(
            f"{credited} credited deposits are above block {height}, and each is taken back until it is read again;"
            " add --force to do so"
        )


def _move(ctx: Context, network: Network, chain: Reader, cursor: Cursor, block: Block, *, is_agreed: bool) -> bool:
    """Move to a block; keep the blocks below it if it is a kept one, else drop all: they belong to another chain."""
    if cursors.kept_hash(network.code, block.height) == block.hash:
        move = partial(cursors.retreat, network.code, to_height=block.height)
    else:
        reorgs.check_count(network, chain, block)
        move = partial(cursors.restart, reorgs.row(network, block))
    return reorgs.go_on(ctx, network, cursor, move, height=block.height, is_agreed=is_agreed) is not None

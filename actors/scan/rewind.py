"""Moves a scan back to a block that an operator names. Used by `sluice scan rewind`.

What came above it is taken back as by a reorganisation, and read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog

from actors.context import Context
from actors.scan import reorgs
from chains.base import Block, witnesses_needed
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors, scans
from models.deposits.cursors import Cursor

log = structlog.get_logger()


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

    Raises RewindRefusedError, and ProviderError where nothing answers. is_forced: also while the scan goes on, with
    credited deposits above the block, and on one provider's word.
    """
    cursor = _cursor_above(network, height)
    if not is_forced:
        _check_need(network, height)
    block = chain.block(height)
    if not isinstance(block, Block):
        raise RewindRefusedError(f"no provider of {network.code} has a block {height}; name another height")
    is_agreed = chain.providers == 1 or chain.agreement(height, block.hash).same >= witnesses_needed(chain.providers)
    if not is_agreed and not is_forced:
        raise RewindRefusedError(f"one provider alone has this block {height}; look at the others, or add --force")
    count = scans.deposits_above(network.code, height)
    if not _move(ctx, network, cursor, block, is_agreed=is_agreed):
        raise RewindRefusedError(f"the scan of {network.code} moved in between; try again")
    log.warning(
        "scan.rewound", network=network.code, from_height=cursor.height, height=height, block_hash=block.hash,
        deposits=count, is_forced=is_forced,
    )  # fmt: skip
    return Rewound(from_height=cursor.height, to_height=height, block_hash=block.hash, deposits=count)


def _cursor_above(network: Network, height: int) -> Cursor:
    cursor = cursors.read(network.code)
    if cursor is None:
        raise RewindRefusedError(f"the scan of {network.code} has not begun")
    if height >= cursor.height:
        raise RewindRefusedError(f"{network.code} is scanned up to block {cursor.height}; name a lower one")
    first = cursors.started_height(network.code)
    if first is not None and height < first:
        raise RewindRefusedError(f"the scan of {network.code} began at block {first}; name that or a higher one")
    return cursor


def _check_need(network: Network, height: int) -> None:
    """Refuse where nothing is halted, or where money that counts would be taken back."""
    state = scans.state(network.code)
    if state is None or not state.halted_reason:
        raise RewindRefusedError(f"the scan of {network.code} is not halted; add --force to move it all the same")
    credited = scans.deposits_above(network.code, height, status="credited")
    if credited:
        raise RewindRefusedError(
            f"{credited} credited deposits are above block {height}, and each is taken back until it is read again;"
            " add --force to do so"
        )


def _move(ctx: Context, network: Network, cursor: Cursor, block: Block, *, is_agreed: bool) -> bool:
    """Move to a kept block, with those below it, or else to this one alone: the kept ones are of another chain."""
    if cursors.kept_hash(network.code, block.height) == block.hash:
        move = partial(cursors.retreat, network.code, to_height=block.height)
    else:
        move = partial(cursors.restart, reorgs.row(network, block))
    return reorgs.go_on(ctx, network, cursor, move, height=block.height, is_agreed=is_agreed) is not None

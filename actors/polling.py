"""Scans the networks: block after block into deposits, then settles what they touched. Rung by the scheduler.

A cursor moves in the transaction of its block's deposits; a block whose parent is not the cursor's walks back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from actors.broker import doorbell, ring, single_flight
from actors.context import Context, context
from chains.base import ProviderError
from chains.registry import adapter
from models import crediting, cursors, deposits, settlement, wallet_settlement
from models.base import repeat_on_deadlock, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from uuid import UUID

    from chains.base import BlockScan, ChainAdapter, Transfer
    from core.catalogue import Catalogue, Network
    from models.cursors import Cursor
    from models.deposits import Found, Owner, OwnerKind

log = structlog.get_logger()

# A step ends after this many blocks, so that settlement, release and the next network get their turn.
BLOCKS_PER_STEP: Final = 50
SETTLED_PER_STEP: Final = 500
RELEASED_PER_STEP: Final = 500

SETTLE: Final[Mapping[OwnerKind, Callable[[Catalogue, UUID], bool]]] = {
    "invoice": settlement.settle,
    "wallet": wallet_settlement.settle,
}
"""Who settles what came to whom; each returns whether a webhook was queued."""


@doorbell(queue="chain", arguments="networks")
def poll_network(network: str) -> None:
    """Scan a network's new blocks and settle what they bring. At most one step per network is in flight."""
    ctx = context()
    known = ctx.catalogue.networks[network]
    with single_flight(f"poll:{network}") as mine:
        if not mine:
            return
        try:
            more = _scan(ctx, known, adapter(known, ctx.settings))
        except ProviderError as error:
            log.warning("the provider failed; the scan goes on where it stopped", network=network, error=str(error))
            more = False
        _settle_due(ctx, known)
        crediting.release_matured(known, limit=RELEASED_PER_STEP)
    if more:
        ring("poll_network", network)


def _scan(ctx: Context, network: Network, chain: ChainAdapter) -> bool:
    """Scan up to BLOCKS_PER_STEP blocks; returns whether there are more."""
    head = chain.head()
    cursor = cursors.read(network.code) or _first_cursor(network, chain, head)
    if cursor is None:
        return False
    cursors.seen_head(network.code, head)
    # A step that died in the middle of a reorg left some.
    _reverse_orphans(ctx, network)
    for _ in range(BLOCKS_PER_STEP):
        if cursor.height >= head:
            return _check_tip(ctx, network, chain, cursor)
        moved = _scan_next(ctx, network, chain, cursor, head)
        if moved is None:
            return False
        cursor = moved
    return cursor.height < head


def _first_cursor(network: Network, chain: ChainAdapter, head: int) -> Cursor | None:
    """Begin at the head: no address was given out before."""
    block = chain.block(head)
    if block is None:
        return None
    cursors.start(
        network.code, height=block.height, block_hash=block.hash, parent_hash=block.parent_hash, block_time=block.time
    )
    return cursors.read(network.code)


def _check_tip(ctx: Context, network: Network, chain: ChainAdapter, cursor: Cursor) -> bool:
    """Notice a tip that was replaced by another of the same height."""
    block = chain.block(cursor.height)
    if block is not None and block.hash == cursor.hash:
        return False
    return _walk_back(ctx, network, chain, cursor) is not None


def _scan_next(ctx: Context, network: Network, chain: ChainAdapter, cursor: Cursor, head: int) -> Cursor | None:
    """Record the next block's deposits and move the cursor; None when there is nothing to go on with."""
    owners: dict[str, Owner] = {}

    def ours(addresses: Collection[str]) -> Collection[str]:
        owners.update(deposits.match(network.family, addresses))
        return owners.keys()

    scan = chain.scan_block(cursor.height + 1, ours)
    if scan is None:
        return None
    if scan.block.parent_hash != cursor.hash:
        return _walk_back(ctx, network, chain, cursor)
    if not repeat_on_deadlock(lambda: _record(ctx, network, cursor, scan, owners, head)):
        return None
    for kind, owner_id in {(owners[t.recipient].kind, owners[t.recipient].id) for t in scan.transfers}:
        _settle(ctx, kind, owner_id)
    return cursors.read(network.code)


def _record(
    ctx: Context, network: Network, cursor: Cursor, scan: BlockScan, owners: dict[str, Owner], head: int
) -> bool:
    with transaction():
        block = scan.block
        if not cursors.advance(
            network.code,
            expected=cursor,
            height=block.height,
            block_hash=block.hash,
            parent_hash=block.parent_hash,
            block_time=block.time,
            head=head,
        ):
            return False
        for transfer in scan.transfers:
            deposits.record(_found(ctx, network, scan, transfer, owners[transfer.recipient]))
    return True


def _found(ctx: Context, network: Network, scan: BlockScan, transfer: Transfer, owner: Owner) -> Found:
    pair = ctx.catalogue.pairs[transfer.currency, network.code]
    return deposits.Found(
        network=network.code,
        txid=transfer.txid,
        ordinal=transfer.ordinal,
        currency=transfer.currency,
        amount_units=pair.to_ledger(transfer.units, ctx.catalogue.scale(transfer.currency)),
        address=transfer.recipient,
        sender=transfer.sender,
        owner=owner,
        stray_reason=_stray_reason(owner, network, transfer, dust=transfer.units < pair.min_deposit_units),
        block_height=scan.block.height,
        block_hash=scan.block.hash,
        block_time=scan.block.time,
    )


def _stray_reason(owner: Owner, network: Network, transfer: Transfer, *, dust: bool) -> str | None:
    """Say why a deposit does not count; the right asset always counts, however small.

    A wallet takes every asset of its own network.
    """
    if owner.kind == "wallet":
        return None if owner.network == network.code else "network"
    if owner.network == network.code and owner.pay_currency == transfer.currency:
        return None
    if dust:
        return "dust"
    return "network" if owner.network != network.code else "asset"


def _walk_back(ctx: Context, network: Network, chain: ChainAdapter, cursor: Cursor) -> Cursor | None:
    """Find the last kept block that the chain still has, take back what came after it, and resume there.

    None where there is nothing to go on with: what the node lacks it may not have seen yet, so that only another block
    in the place of ours proves a reorg.
    """
    is_proved = False
    for height, block_hash in cursors.kept_blocks(network.code):
        block = chain.block(height)
        if block is None or block.hash != block_hash:
            is_proved |= block is not None
            continue
        if not is_proved:
            return None
        log.warning("reorg", network=network.code, depth=cursor.height - height, fork_height=height)
        with transaction():
            cursors.retreat(network.code, expected=cursor, to_height=height)
        _reverse_orphans(ctx, network)
        return cursors.read(network.code)
    log.error("reorg deeper than the kept blocks: this network's scan stands still", network=network.code)
    return None


def _reverse_orphans(ctx: Context, network: Network) -> None:
    wallet_settlement.reverse_orphans(network.code)
    if settlement.reverse_orphans(ctx.catalogue, network.code):
        ring("deliver_webhooks")


def _settle_due(ctx: Context, network: Network) -> None:
    for kind in SETTLE:
        due = deposits.owners_due(network.code, kind=kind, confirmations=network.confirmations, limit=SETTLED_PER_STEP)
        for owner_id in due:
            _settle(ctx, kind, owner_id)


def _settle(ctx: Context, kind: OwnerKind, owner_id: UUID) -> None:
    if repeat_on_deadlock(lambda: SETTLE[kind](ctx.catalogue, owner_id)):
        ring("deliver_webhooks")

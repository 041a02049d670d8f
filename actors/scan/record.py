"""Records a transfer on a chain as a deposit, and settles its owner. Shared by the actors that read chains.

Our own transfers, gas and sweeps, are no payments. A transfer from others to the hot wallet is a top-up. Where claims
are coins, a transfer to an address that was given to no owner is a top-up too, but its coin is not the gateway's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.queue.isolated import isolated
from actors.scan.reading import Matching, Reading
from chains.base import NATIVE, Block, Transfer
from chains.family import Reader
from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.ids import uuid7
from core.money import format_coin
from core.rates.pricing import CENTS, usd_cents
from models.deposits import probes, witnesses
from models.deposits import rows as deposits
from models.deposits.rows import Booked, Deposit, Owner, OwnerKind
from models.invoices import settlement, tallies
from models.invoices.quoting import Targets
from models.treasury import addresses, topup_doubts, topups
from models.treasury.rows import Origin, Topup
from models.wallets import settlement as wallet_settlement

log = structlog.get_logger()

# This many coins below the smallest amount count towards an invoice, and after them the one that completes its price.
SMALL_MAX: Final = 3

Waiting = Callable[[], Sequence[int]]
Target = Callable[[], int | None]

SETTLE: Final[Mapping[OwnerKind, Callable[[Catalogue, UUID], None]]] = {
    "invoice": settlement.settle,
    "wallet": wallet_settlement.settle,
}
"""The function that settles each kind of owner."""


def found_in(
    ctx: Context,
    network: Network,
    block: Block,
    transfer: Transfer,
    owner: Owner,
    *,
    targets: Targets | None = None,
) -> Deposit:
    """Return a transfer as its owner's deposit. targets: those of the step that reads the block."""
    target = partial((targets or Targets()).units, ctx.catalogue, owner.id, block.time)
    pair = ctx.catalogue.pairs[transfer.currency, network.code]
    return Deposit(
        network=network.code,
        txid=transfer.txid,
        ordinal=transfer.ordinal,
        currency=transfer.currency,
        amount_units=pair.to_ledger(transfer.units, ctx.catalogue.scale(transfer.currency)),
        address=transfer.recipient,
        sender=transfer.sender,
        owner_kind=owner.kind,
        owner_id=owner.id,
        merchant_id=owner.merchant_id,
        stray_reason=stray_reason(ctx.catalogue, owner, network, transfer, target=target),
        block_height=block.height,
        block_hash=block.hash,
        block_time=block.time,
        depth_min=transfer.depth_min,
    )


def stray_reason(
    catalogue: Catalogue,
    owner: Owner,
    network: Network,
    transfer: Transfer,
    *,
    target: Target,
    waiting: Waiting = tuple,
) -> str | None:
    """Return why a deposit does not count; None if it counts.

    The right asset counts, however small, except beyond a limited number of small coins. A wallet takes every asset, on
    every network on which its address is watched.

    target: returns the amount of the invoice's quote in force. waiting: returns, in ledger units, the owner's other
    payments that count and are in no block yet. For sightings only: transfers in blocks are compared with deposits.
    """
    pair = catalogue.pairs[transfer.currency, network.code]
    is_small = transfer.units < pair.min_deposit_units
    if owner.kind == "wallet" or (owner.network, owner.pay_currency) == (network.code, transfer.currency):
        units = pair.to_ledger(transfer.units, catalogue.scale(transfer.currency))
        small_below = catalogue.smallest_deposit(pair)
        return "dust" if is_small and _is_dear(owner, network, units, small_below, target, waiting) else None
    if is_small:
        return "dust"
    return "network" if owner.network != network.code else "asset"


def _is_dear(owner: Owner, network: Network, units: int, small_below: int, target: Target, waiting: Waiting) -> bool:
    """Return whether spending one more small deposit costs more than a few per cent of it.

    An invoice takes some small coins, so that a buyer can complete a price, and after them the one that completes it:
    strangers may have sent the others. A wallet takes none.
    """
    if not traits_of(network).has_fee_per_deposit:
        return False
    if owner.kind == "wallet":
        return True
    others = waiting()
    count = deposits.small_count(owner.id, units_below=small_below, limit=SMALL_MAX)
    if count + sum(each < small_below for each in others) < SMALL_MAX:
        return False
    return not tallies.is_completed_by(owner.id, units, target_units=target(), waiting_units=sum(others))


def take(ctx: Context, chain: Reader, deposit: Deposit) -> bool:
    """Record a deposit once, and decide whether it needs witnesses. Call inside a transaction.

    A network with a single provider has no witnesses; production starts like that only if the operator allowed it.
    """
    if deposit.ordinal == NATIVE and probes.covers(deposit, is_witnessed=chain.providers > 1):
        return False
    first = topups.lock_coin(deposit.network, deposit.txid, deposit.ordinal)
    if first is not None and first.origin == "adopted":
        # An operator who kept the coin has settled with its payer.
        if first.status != "reversed":
            return False
        if (first.currency, first.units, first.address) == (deposit.currency, deposit.amount_units, deposit.address):
            return _take_topup(ctx, chain, _kept(deposit))
    if not deposits.record(deposit):
        return False
    if first is not None and first.status != "reversed":
        _change_owner(ctx, first, deposit)
    if chain.providers > 1:
        witnesses.guard(deposit, usd_cents=_usd_cents(ctx, deposit.currency, deposit.amount_units), policy=_policy(ctx))
    return True


def _kept(deposit: Deposit) -> Topup:
    """Return a top-up for a coin that an operator kept as the gateway's own before a reorg or rewind took it."""
    return Topup(
        id=uuid7(),
        network=deposit.network,
        txid=deposit.txid,
        ordinal=deposit.ordinal,
        currency=deposit.currency,
        units=deposit.amount_units,
        sender=deposit.sender,
        address=deposit.address,
        origin="adopted",
        block_height=deposit.block_height,
        block_hash=deposit.block_hash,
        depth_min=deposit.depth_min,
    )


def _change_owner(ctx: Context, first: Topup, new: Deposit) -> None:
    """Reverse the top-up booked for a coin before its address's owner was known."""
    topups.reverse(first)
    log.warning(
        "deposit.owner_changed", network=new.network, txid=new.txid, ordinal=new.ordinal, address=new.address,
        owner_kind=new.owner_kind, owner_id=str(new.owner_id), currency=new.currency,
        amount=format_coin(first.units, ctx.catalogue.scale(first.currency)),
    )  # fmt: skip


def take_transfer(
    ctx: Context, network: Network, chain: Reader, block: Block, transfer: Transfer, ours: Matching
) -> bool:
    """Record a transfer as a deposit or top-up; return whether it was new. Call inside a transaction."""
    sender = transfer.sender if traits_of(network).has_sender else None
    if addresses.is_own_move(network.code, transfer.mark or transfer.txid, sender):
        return False
    owner = ours.owners.get(transfer.recipient)
    if owner is None:
        return _take_topup(ctx, chain, _topup(ctx, network, block, transfer, ours))
    return take(ctx, chain, found_in(ctx, network, block, transfer, owner, targets=ours.targets))


def _take_topup(ctx: Context, chain: Reader, new: Topup) -> bool:
    """Record a top-up as take() records a deposit: conversions may sell it, and payouts spend it."""
    if not topups.record(new):
        return False
    if new.origin == "unowned" and not topups.is_kept(new):
        log.error(
            "deposit.unowned", network=new.network, txid=new.txid, ordinal=new.ordinal, address=new.address,
            currency=new.currency, amount=format_coin(new.units, ctx.catalogue.scale(new.currency)),
        )  # fmt: skip
    if chain.providers > 1:
        topup_doubts.guard(new, usd_cents=_usd_cents(ctx, new.currency, new.units), policy=_policy(ctx))
    return True


def _topup(ctx: Context, network: Network, block: Block, transfer: Transfer, ours: Matching) -> Topup:
    pair = ctx.catalogue.pairs[transfer.currency, network.code]
    return Topup(
        id=uuid7(),
        network=network.code,
        txid=transfer.txid,
        ordinal=transfer.ordinal,
        currency=transfer.currency,
        units=pair.to_ledger(transfer.units, ctx.catalogue.scale(transfer.currency)),
        sender=transfer.sender,
        address=transfer.recipient,
        origin=_origin(network, transfer, ours),
        block_height=block.height,
        block_hash=block.hash,
        depth_min=transfer.depth_min,
    )


def _origin(network: Network, transfer: Transfer, ours: Matching) -> Origin:
    """Return a top-up's origin, by the recipient and sender of the transfer."""
    if transfer.recipient != ours.hot:
        return "unowned"
    return "cold" if addresses.is_cold(network.code, transfer.sender) else "transfer"


def note(reading: Reading) -> int:
    """Record a block's transfers, and ask for witnesses of those that its readings may not show alike.

    Returns the number of new deposits and top-ups. Call inside the transaction that records the block.
    """
    network, chain, scan = reading.network, reading.chain, reading.scan
    new = [
        transfer for transfer in scan.transfers
        if not (reading.is_late and _is_denied(network, scan.block, transfer))
        and take_transfer(reading.ctx, network, chain, scan.block, transfer, reading.ours)
    ]  # fmt: skip
    # The first reading did not show what a second one adds: one provider hides it, or the other invented it.
    doubted = new if reading.is_late else [] if scan.is_proved else scan.transfers
    for transfer in doubted if chain.providers > 1 else ():
        doubt(network.code, transfer.txid, transfer.ordinal)
    return len(new)


def _is_denied(network: Network, block: Block, transfer: Transfer) -> bool:
    """Return True if providers denied a payment of coin in this block. Its balance shows any coin that it brought."""
    return witnesses.is_denied(network.code, transfer.txid, transfer.ordinal, block_hash=block.hash)


def concerns(reading: Reading) -> bool:
    """Return whether a block brought us a transfer."""
    return bool(reading.scan.transfers)


def booked_as(catalogue: Catalogue, network: Network, transfer: Transfer) -> Booked:
    """Return a transfer in the form of its row."""
    units = catalogue.pairs[transfer.currency, network.code].to_ledger(
        transfer.units, catalogue.scale(transfer.currency)
    )
    return Booked(transfer.txid, transfer.ordinal, transfer.currency, units, transfer.recipient)


def doubt(network: str, txid: str, ordinal: str) -> None:
    """Ask for witnesses of a pending deposit or top-up that two readings of its block do not show alike."""
    witnesses.doubt(network, txid, ordinal)
    topup_doubts.doubt(network, txid, ordinal)


def _policy(ctx: Context) -> witnesses.Policy:
    return witnesses.Policy(
        threshold_usd_cents=ctx.settings.quorum_usd * CENTS, hourly_usd_cents=ctx.settings.quorum_hourly_usd * CENTS
    )


def _usd_cents(ctx: Context, currency: str, units: int) -> int | None:
    """Return an amount's worth in US cents now, rounded up; None without a fresh rate."""
    rate: int | None = ctx.market.read().rates.get(currency)
    return None if rate is None else usd_cents(units, rate=rate, scale=ctx.catalogue.scale(currency), up=True)


def settle_owners(ctx: Context, owners: Iterable[tuple[OwnerKind, UUID]]) -> None:
    """Settle the owners of new transfers, each in its own transaction."""
    for kind, owner_id in owners:
        settle = SETTLE[kind]
        isolated(owner_id, settle, ctx.catalogue, owner_id)

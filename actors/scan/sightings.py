"""Reads a network's mempools and notes the payments to invoices among them. Notified by the scheduler.

A sighting only proves when the payment was seen: it credits nothing. Each step reads a portion and writes it; a step
that dies in between has written nothing, and the next reads the same portion again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast
from uuid import UUID

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan.record import stray_reason
from chains.base import Ours, Sighting, Sightings, Transfer
from chains.family import MempoolReader, Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.db.base import app_now, transaction
from models.deposits import cursors, sightings
from models.deposits import rows as deposits
from models.deposits.rows import Owner
from models.invoices import quoting
from models.invoices import rows as invoices
from models.treasury import addresses as treasury_addresses

log = structlog.get_logger()


@network_tick("sightings")
def seek_sightings(ctx: Context, network: Network, chain: Reader) -> bool:
    """Note a portion of the pools' payments; return whether there are more. Nothing before the scan has begun."""
    if not traits_of(network).has_mempool or cursors.read(network.code) is None:
        return False
    ours = _Awaited(network)
    # The trait has_mempool means that the family's reader is one.
    shown = cast("MempoolReader", chain).sightings(ours, sightings.known(network.code))
    # Asked for afterwards: a payment that left the pools for a block is in one up to this head.
    head = chain.head() if shown.gone else 0
    _write(ctx, network, ours, shown, head)
    if not shown.is_more:
        sightings.note_look(network.code)
    return shown.is_more


class _Awaited(Ours):
    """Finds invoices' addresses, as chains.base.Ours: only invoices use a payment before it is in a block."""

    def __init__(self, network: Network) -> None:
        self._family = network.family
        self.owners: dict[str, Owner] = {}
        self.targets = quoting.Targets()

    def addresses(self, seen: Collection[str]) -> Collection[str]:
        """Return the addresses that belong to invoices."""
        owners = {owner.address: owner for owner in deposits.match(self._family, seen).values()}
        invoices = {address: owner for address, owner in owners.items() if owner.kind == "invoice"}
        self.owners.update(invoices)
        return invoices.keys()

    def coins(self, seen: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return no coins: only blocks show which transactions spend our coins."""
        del seen
        return ()


def _write(ctx: Context, network: Network, ours: _Awaited, shown: Sightings, head: int) -> None:
    with transaction():
        paid = sightings.owners_of(network.code, {*shown.unseen, *(each.transfer.txid for each in shown.seen)})
        paid += [(each.transfer.txid, ours.owners[each.transfer.recipient].id) for each in shown.seen]
        # A quote is written before any sighting that holds it changes, and no quote may begin while sightings change.
        locked, busy = invoices.lock_free({owner_id for _, owner_id in paid})
        # A step that ends invoices may keep some locked for seconds: only these are left to the next look.
        left = {txid for txid, owner_id in paid if owner_id in busy}
        shown = replace(
            shown,
            seen=tuple(each for each in shown.seen if each.transfer.txid not in left),
            unseen=shown.unseen - left,
            gone=shown.gone - left,
        )
        invoice_ids = quoting.write_before_change(ctx.catalogue, locked)
        now = app_now()
        # Payments in no pool may be in a block that the scan has not read: they are marked lost, not doubted.
        sightings.doubt(network.code, shown.unseen - shown.gone)
        sightings.lose(network.code, shown.gone, height=head, left=left)
        noted = sightings.note(list(_rows(ctx, network, ours, shown.seen)), now=now)
        sightings.doubt_replaced(network.code, left=left)
        gone = sightings.forget_lost(network.code, left=left)
        # A replacement holds the quote that begins when the replaced payment releases its own.
        quoting.release(ctx.catalogue, invoice_ids, now=now)
        sightings.expect(network.code, [each.transfer.txid for each in shown.seen if each.is_soon], now=now)
    if noted or gone:
        log.info("sightings.read", network=network.code, noted=noted, forgotten=len(gone))


def _rows(ctx: Context, network: Network, ours: _Awaited, seen: Collection[Sighting]) -> Iterator[sightings.Sighting]:
    before: list[sightings.Sighting] = []
    for sighting in seen:
        transfer = sighting.transfer
        pair = ctx.catalogue.pairs[transfer.currency, network.code]
        units = pair.to_ledger(transfer.units, ctx.catalogue.scale(transfer.currency))
        owner = ours.owners[transfer.recipient]
        sender = transfer.sender if traits_of(network).has_sender else None
        if units <= 0 or treasury_addresses.is_own_move(network.code, transfer.mark or transfer.txid, sender):
            continue
        spends = [f"{txid}:{vout}" for txid, vout in sighting.spends]
        others = partial(_others, owner.id, transfer, spends, before)
        new = sightings.Sighting(
            network=network.code,
            txid=transfer.txid,
            ordinal=transfer.ordinal,
            currency=transfer.currency,
            units=units,
            address=transfer.recipient,
            owner_kind=owner.kind,
            owner_id=owner.id,
            merchant_id=owner.merchant_id,
            stray_reason=stray_reason(
                ctx.catalogue,
                owner,
                network,
                transfer,
                target=partial(ours.targets.units, ctx.catalogue, owner.id, None),
                waiting=others,
            ),
            spends=spends,
            is_soon=sighting.is_soon,
        )
        before.append(new)
        yield new


def _others(
    owner_id: UUID, transfer: Transfer, spends: Sequence[str], before: Sequence[sightings.Sighting]
) -> list[int]:
    """Return the units of an owner's other sightings that count: stored ones, and earlier ones of this step.

    Those of another transaction that spends one of the same coins are left out, since one replaces the other.
    """
    units_by_output = {
        (txid, ordinal): units
        for txid, ordinal, units in sightings.counting(owner_id, besides=spends, txid=transfer.txid)
    }
    units_by_output |= {
        (each.txid, each.ordinal): each.units
        for each in before
        if each.owner_id == owner_id and each.stray_reason is None
        and (each.txid == transfer.txid or not set(each.spends) & set(spends))
    }  # fmt: skip
    units_by_output.pop((transfer.txid, transfer.ordinal), None)
    return list(units_by_output.values())

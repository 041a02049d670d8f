"""Notices what left our addresses without any row of ours, in what a scan read. No actor; used by those that scan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import structlog

from actors.context import Context
from chains.base import BlockScan, Departure
from chains.family import CounterReader, Reader
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.spends import unknown as unknown_spends
from models.spends.unknown import UnknownRow

log = structlog.get_logger()


def unknown_in(
    ctx: Context, network: Network, chain: Reader, scans: Iterable[BlockScan]
) -> dict[str, list[UnknownRow]]:
    """Return, by block hash, what one of our keys signed in these blocks and no row knows. Raises ProviderError.

    None where the claim is no counter: there actors.scan.outflow sees them. Called outside of transactions:
    nodes are asked for what is found. Bytes are committed before they are sent, so that whatever of ours stands in a
    block has its row already.
    """
    if traits_of(network).claim != "counter":
        return {}
    # By this trait a family says that its reader is one.
    counting, read = cast("CounterReader", chain), list(scans)
    ours = unknown_spends.own(network.code, network.family, {sender for scan in read for sender, _ in scan.sent})
    sent = {txid: scan for scan in read for sender, txid in scan.sent if sender in ours}
    found: dict[str, list[UnknownRow]] = {}
    for txid in sorted(unknown_spends.unheard_of(network.code, sent)):
        block = sent[txid].block
        departure = counting.departure(txid, block)
        if departure is None or departure.sender not in ours:
            log.error("departure.contradicted", network=network.code, txid=txid)
            continue
        new = _noted(ctx, network, departure, ours[departure.sender])
        found.setdefault(block.hash, []).append(new)
    return found


def _noted(ctx: Context, network: Network, found: Departure, key_ordinal: int | None) -> UnknownRow:
    pair = found.pair or ctx.catalogue.pair(network.gas_currency, network.code)
    log.critical(
        "departure.unknown", network=network.code, txid=found.txid,
        sender=found.sender, slot=found.slot, height=found.height,
    )  # fmt: skip
    return UnknownRow(
        network=network.code,
        txid=found.txid,
        sender=found.sender,
        key_ordinal=key_ordinal,
        slot=found.slot or 0,
        recipient=found.outputs[0].recipient,
        currency=network.gas_currency if found.pair is None else found.pair.currency,
        contract=None if found.pair is None else found.pair.contract,
        decimals=ctx.catalogue.scale(network.gas_currency) if pair is None else pair.decimals,
        token_units=found.outputs[0].units,
        is_transfer=found.is_transfer and len(found.outputs) == 1,
        raw=found.raw,
        ceiling_units=found.offer.ceiling_units,
        terms=dict(found.offer.terms),
        is_success=not found.failed,
        chain_fee_units=found.fee_units,
        block_height=found.height,
        block_hash=found.block_hash,
    )

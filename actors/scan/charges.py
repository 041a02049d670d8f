"""Records what a block took from our addresses without a spend. An observer of actors.scan.observers."""

from __future__ import annotations

import structlog

from actors.scan.reading import Reading
from chains.base import Charge
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.treasury import charges
from models.treasury.charges import ChargeRow

log = structlog.get_logger()


def note(reading: Reading) -> int:
    """Record a block's charges, and doubt those that only one of its readings shows. Records no deposits.

    Of a single provider, a second reading adds charges that count at once.
    """
    network, block = reading.network, reading.scan.block
    if not traits_of(network).has_charges:
        return 0
    shown = [row for charge in reading.scan.charges if (row := _row(reading, charge)).units]
    charges.note(shown, is_doubted=reading.is_late and reading.chain.providers > 1)
    if reading.is_late:
        for txid in charges.doubt(network.code, height=block.height, block_hash=block.hash, shown=shown):
            log.error("rescan.charge_differs", network=network.code, height=block.height, txid=txid)
    return 0


def concerns(reading: Reading) -> bool:
    """Return whether a block has charges, by this reading or by an earlier one."""
    return bool(reading.scan.charges) or (
        traits_of(reading.network).has_charges
        and charges.is_any_in(reading.network.code, height=reading.scan.block.height)
    )


def take_back(network: Network) -> None:
    """Undo note() for blocks above the cursor."""
    if traits_of(network).has_charges:
        charges.take_back(network)


def _row(reading: Reading, charge: Charge) -> ChargeRow:
    network, catalogue = reading.network, reading.ctx.catalogue
    pair = catalogue.pair(network.gas_currency, network.code)
    return ChargeRow(
        network=network.code,
        txid=charge.txid,
        address=charge.address,
        currency=network.gas_currency,
        decimals=catalogue.scale(network.gas_currency) if pair is None else pair.decimals,
        units=charge.units,
        block_height=reading.scan.block.height,
        block_hash=reading.scan.block.hash,
    )

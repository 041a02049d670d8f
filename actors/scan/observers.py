"""Lists the observers of blocks, and has them note or take back what the scan read. Used by the actors that scan.

A block's findings are recorded in one transaction, whichever of them there are: a row here, and no call in the scan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from actors.context import Context
from actors.scan import charges, coins, departures, record
from actors.scan.reading import NOTHING, Left, Matching, Observer, Reading
from chains.base import BlockScan
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.db.base import transaction
from models.deposits import cursors

OBSERVERS: Final = (
    Observer(note=coins.note, concerns=coins.concerns, take_back=coins.take_back),
    Observer(note=departures.note, concerns=departures.concerns, take_back=departures.take_back),
    Observer(note=charges.note, concerns=charges.concerns, take_back=charges.take_back),
    Observer(note=record.note, concerns=record.concerns),
)
"""In the order in which they note a block. What reorgs take from deposits is reversed by actors.scan.reorgs."""


def note(reading: Reading) -> int:
    """Record a block's findings; return the number of new deposits and top-ups. Call inside a transaction."""
    return sum(observer.note(reading) for observer in OBSERVERS)


def take_back(network: Network) -> None:
    """Undo note() for blocks above the cursor. Call in the transaction that moves the cursor back."""
    for observer in OBSERVERS:
        observer.take_back(network)


class Again(NamedTuple):
    """The findings of a second reading. recorded: the number of new deposits and top-ups."""

    recorded: int
    left: Left


def note_again(ctx: Context, network: Network, chain: Reader, scan: BlockScan, ours: Matching) -> Again:
    """Record a second reading of a scanned block, with its departures: our own transfer is no payment.

    Call outside of transactions, since providers are asked about departures. Raises ChainError.
    """
    left = departures.left_in(ctx, network, chain, [scan]).get(scan.block.hash, NOTHING)
    lacking = departures.lacking_in(network, chain, scan)
    reading = Reading(ctx=ctx, network=network, chain=chain, scan=scan, ours=ours, left=left, lacking=lacking)
    return Again(note_late(reading), left)


def note_late(reading: Reading) -> int:
    """Record the findings of a second reading of a scanned block; return the number of new deposits and top-ups.

    Nothing is recorded unless the block is part of the scanned chain.
    """
    # Departures in the block matter even if they brought us no transfer.
    late = replace(reading, is_late=True)
    if not any(observer.concerns(late) for observer in OBSERVERS):
        return 0
    block = reading.scan.block
    with transaction():
        if not cursors.is_scanned(reading.network.code, height=block.height, block_hash=block.hash):
            return 0
        return note(late)

"""Records our coins that a block makes and spends, and departures without a row.

No actor; called by the actors that scan, in the transaction that records a block or takes some back. Where
counters show departures, actors.scan.departures has read those without a row before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from chains.base import BlockScan, Transfer
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.spends import coins, seen, strangers
from models.spends import unknown as unknown_spends
from models.spends.coins import CoinRow, Spending
from models.spends.unknown import UnknownRow


class Left(NamedTuple):
    """Transactions of our keys in one block, where counters show departures."""

    # The departures without a row, and the ids of those with one.
    unknown: tuple[UnknownRow, ...] = ()
    known: tuple[str, ...] = ()


NOTHING: Final = Left()


def is_watched(network: Network, scan: BlockScan) -> bool:
    """Return whether a block's senders have to be checked."""
    return traits_of(network).notes_departures_by_sender and bool(scan.sent)


def note(network: Network, scan: BlockScan, left: Left = NOTHING) -> None:
    """Record a block's coins and included attempts; stop signing for a departure without a row."""
    traits, block, code = traits_of(network), scan.block, network.code
    if traits.notes_departures_by_counter:
        for departure in left.unknown:
            unknown_spends.note(departure)
        seen.note(code, left.known, height=block.height, block_hash=block.hash)
        return
    if traits.spends_coins:
        made = [_coin(network, scan, transfer) for transfer in scan.transfers]
        spent = [Spending(coin.txid, coin.vout, coin.by_txid) for coin in scan.spent]
        coins.note(code, made, spent, height=block.height, block_hash=block.hash)
        takers = {coin.by_txid: "" for coin in scan.spent}
    else:
        ours = unknown_spends.own(code, network.family, {sender for sender, _ in scan.sent})
        takers = {txid: sender for sender, txid in scan.sent if sender in ours}
    strangers.note(code, takers, height=block.height, block_hash=block.hash)
    seen.note(code, takers, height=block.height, block_hash=block.hash)


def take_back(network: Network) -> None:
    """Undo note() for blocks above the cursor. Call in the transaction that moves the cursor back."""
    traits = traits_of(network)
    if traits.spends_coins:
        coins.take_back(network.code)
    if not traits.notes_departures_by_counter:
        strangers.take_out(network.code)


def _coin(network: Network, scan: BlockScan, transfer: Transfer) -> CoinRow:
    return CoinRow(
        network=network.code,
        txid=transfer.txid,
        vout=int(transfer.ordinal),
        address=transfer.recipient,
        currency=transfer.currency,
        units=transfer.units,
        depth_min=transfer.depth_min,
        created_height=scan.block.height,
        created_hash=scan.block.hash,
    )

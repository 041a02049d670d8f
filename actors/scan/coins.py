"""Records our coins that a block makes and spends, where spends take coins. An observer of actors.scan.observers."""

from __future__ import annotations

from actors.scan.reading import Reading
from chains.base import BlockScan, Transfer
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from models.spends import coins
from models.spends.coins import CoinRow, Spending


def note(reading: Reading) -> int:
    """Record a block's coins, and which transaction spent each. Records no deposits."""
    network, scan = reading.network, reading.scan
    if traits_of(network).spends_coins:
        made = [_coin(network, scan, transfer) for transfer in scan.transfers]
        spent = [Spending(coin.txid, coin.vout, coin.by_txid) for coin in scan.spent]
        coins.note(network.code, made, spent, height=scan.block.height, block_hash=scan.block.hash)
    return 0


def concerns(reading: Reading) -> bool:
    """Return whether a block spent a coin; those that it makes are transfers."""
    return bool(reading.scan.spent)


def take_back(network: Network) -> None:
    """Undo note() for blocks above the cursor."""
    if traits_of(network).spends_coins:
        coins.take_back(network.code)


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

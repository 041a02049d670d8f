"""Finds what of a proved block is ours: outputs by their address, inputs by their coin. Called by the reader.

Ours is asked twice for a block. It knows coins that are recorded; those that the same scan has just found are known
here, so that a coin made and spent before it was recorded is reported as spent.
"""

from typing import Final

from chains.base import BlockScan, Ours, SpentCoin, Transfer
from chains.bitcoin.block import Paid, ProvedBlock, outpoints
from chains.bitcoin.scripts import key_hash_addresses

# Blocks that a coin which a block itself makes cannot be spent in, its own included.
COINBASE_DEPTH: Final = 100

Outpoint = tuple[str, int]


class Matcher:
    """Matches consecutive blocks of one chain. Of one scan, and forgotten with it."""

    def __init__(self, currency: str, chain: str) -> None:
        self._currency, self._chain = currency, chain
        self._made: set[Outpoint] = set()

    def match(self, proved: ProvedBlock, ours: Ours) -> BlockScan:
        """Return what a block holds for us."""
        transfers = self._transfers(proved, ours)
        self._made.update((transfer.txid, int(transfer.ordinal)) for transfer in transfers)
        return BlockScan(block=proved.block, transfers=transfers, spent=self._spent(proved, ours))

    def _transfers(self, proved: ProvedBlock, ours: Ours) -> tuple[Transfer, ...]:
        scripts = {paid.script for paid in proved.paid if paid.units}
        addresses = dict(zip(key_hash_addresses(scripts, self._chain), scripts, strict=True))
        mine = ours.addresses(addresses.keys()) if addresses else ()
        by_script = {addresses[address]: address for address in mine}
        return tuple(
            self._transfer(proved, paid, by_script[paid.script])
            for paid in proved.paid
            if paid.units and paid.script in by_script
        )

    def _transfer(self, proved: ProvedBlock, paid: Paid, recipient: str) -> Transfer:
        return Transfer(
            txid=proved.txid(paid.place),
            ordinal=str(paid.vout),
            currency=self._currency,
            units=paid.units,
            sender="",
            recipient=recipient,
            depth_min=0 if paid.place else COINBASE_DEPTH,
        )

    def _spent(self, proved: ProvedBlock, ours: Ours) -> tuple[SpentCoin, ...]:
        # The coinbase spends nothing.
        spent = dict(outpoints(proved.spent[1:]))
        mine = {*ours.coins(spent.keys()), *(self._made & spent.keys())} if spent else set()
        return tuple(
            SpentCoin(txid=txid, vout=vout, by_txid=proved.txid(place))
            for (txid, vout), place in spent.items()
            if (txid, vout) in mine
        )

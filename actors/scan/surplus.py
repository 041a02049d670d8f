"""Books the surplus of an address's balance as deposits. Used by actors.scan.balances.

Returning coin is the deposit that it was: its shares and refunds are not paid again. First of all a traced transfer
takes over the deposit of its sum. Before the other traced transfers come sums that were paid out, and the rest of the
surplus is a deposit without a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

import structlog

from actors.context import Context
from actors.scan import kept
from actors.scan.record import found_in, take
from chains.base import Block, Transfer
from chains.family import Reader
from core.catalogue.catalogue import Network, Pair
from models.db.base import transaction
from models.deposits import cursors, probes
from models.deposits.cursors import Cursor
from models.deposits.probes import TakenBack
from models.deposits.rows import Owner
from models.treasury import addresses

log = structlog.get_logger()

# A payer chooses the number of transfers in a trace; smaller ones are part of the deposit without a transaction.
TRACED_MAX: Final = 20
# This many taken-back deposits return at once; those that were paid out come first.
RETURNED_MAX: Final = 20


class Booking:
    """A surplus at one address after a block, and the deposits that it becomes."""

    def __init__(
        self,
        ctx: Context,
        network: Network,
        chain: Reader,
        pair: Pair,
        owner: Owner,
        *,
        block: Block,
        cursor: Cursor,
        deposited: int,
        units: int,
    ) -> None:
        """Book a surplus of an owner's address.

        block: the one after which the balance has the surplus. deposited: the sum of the deposits up to the cursor, in
        ledger units, as it was compared. units: the surplus in token units that is still there at the cursor.
        """
        self._ctx, self._network, self._chain, self._pair, self._owner = ctx, network, chain, pair, owner
        self._block, self._cursor, self._deposited = block, cursor, deposited
        self._left_units, self._places = units, TRACED_MAX

    def run(self, traced: Collection[Transfer]) -> None:
        """Record deposits of the whole surplus, unless the books or the chain have changed since they were compared.

        traced: the transfers in the block's trace, which alone is no proof. Call outside of transactions.
        """
        blocks = {each.id: self._own_block(each) for each in self._taken_back()[:RETURNED_MAX]}
        with transaction():
            if self._is_unchanged():
                self._take_all(traced, blocks)

    def _is_unchanged(self) -> bool:
        """Return True if deposits explain no more of the balance than when it was compared. Locks the cursor."""
        code, address = self._network.code, self._owner.address
        return (
            self._is_scanned(self._block)
            # Our own gas, or a sweep, may explain it.
            and not addresses.is_in_motion(code, [address])
            # The scan or its second reading may have recorded some of it; the next step compares again.
            and self._deposited == self._deposited_now()
            # Witnesses may have dated its coin to a later block.
            and (probes.explained_height(code, address) or 0) < self._block.height
        )

    def _deposited_now(self) -> int:
        currency, height = self._pair.currency, self._cursor.height
        return probes.deposited_units(self._network.code, self._owner.address, currency, height=height)

    def _is_scanned(self, block: Block) -> bool:
        return cursors.is_scanned(self._network.code, height=block.height, block_hash=block.hash)

    def _take_all(self, traced: Collection[Transfer], blocks: Mapping[UUID, Block]) -> None:
        largest = sorted(traced, key=lambda each: each.units, reverse=True)
        sums = {self._token_units(each) for each in self._taken_back()}
        self._take(each for each in largest if each.units in sums)
        self._take_again(blocks, only_paid_out=True)
        self._take(each for each in largest if each.units not in sums)
        self._take_again(blocks)
        units = self._left_units
        if units > 0 and self._record(self._block, self._unnamed(units)):
            log.warning(
                "deposit.without_transaction", network=self._network.code, height=self._block.height, units=units
            )

    def _take(self, transfers: Iterable[Transfer]) -> None:
        for transfer in transfers:
            if self._places == 0:
                return
            if transfer.units <= self._left_units:
                self._places -= 1
                self._record(self._block, transfer)

    def _take_again(self, blocks: Mapping[UUID, Block], *, only_paid_out: bool = False) -> None:
        """Record taken-back deposits under their own names, in their own blocks if the chain has them."""
        for each in self._taken_back():
            if each.id not in blocks or (only_paid_out and not each.is_paid_out):
                continue
            transfer = self._returned(each)
            if transfer.units <= self._left_units:
                own = blocks[each.id]
                self._record(own if self._is_scanned(own) else self._block, transfer)

    def _record(self, within: Block, transfer: Transfer) -> bool:
        deposit = found_in(self._ctx, self._network, within, transfer, self._owner)
        probes.name_again(deposit)
        is_new = take(self._ctx, self._chain, deposit)
        if is_new:
            self._left_units -= transfer.units
        return is_new

    def _own_block(self, earlier: TakenBack) -> Block:
        """Return the block of a deposit that returns: its own one if the chain has it, else that of the surplus.

        The block of a denied one was an invention, or one provider's word.
        """
        if earlier.is_denied or earlier.block_height > self._block.height:
            return self._block
        own = kept.block(self._network, self._chain, earlier.block_height, earlier.block_hash)
        return own or self._block

    def _taken_back(self) -> list[TakenBack]:
        """Return the address's hidden deposits that a reorg, a rewind or a denial took back; paid-out ones first."""
        owner = self._owner
        reversals = probes.taken_back(self._network.code, owner.address, self._pair.currency, owner.id)
        return sorted(reversals, key=lambda each: not each.is_paid_out)

    def _token_units(self, earlier: TakenBack) -> int:
        return self._pair.from_ledger(earlier.units, self._ctx.catalogue.scale(self._pair.currency))

    def _returned(self, earlier: TakenBack) -> Transfer:
        return Transfer(
            txid=earlier.txid,
            ordinal=earlier.ordinal,
            currency=self._pair.currency,
            units=self._token_units(earlier),
            sender=earlier.sender,
            recipient=self._owner.address,
            depth_min=earlier.depth_min,
        )

    def _unnamed(self, units: int) -> Transfer:
        return Transfer(
            txid="",
            ordinal=probes.ordinal(self._network.code, self._owner.address, self._block.height),
            currency=self._pair.currency,
            units=units,
            sender="",
            recipient=self._owner.address,
        )

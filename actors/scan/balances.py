"""Compares balances with deposits, and books coin that contracts passed on. Notified by the scheduler, by network.

If a family has no such transfers, no provider is asked.
The chain shows such coin in no transaction and no log. If a balance is more than its deposits explain, the probe finds
the block in which it grew. That block is read again by another provider, then traced, and a surplus that remains
unexplained becomes a deposit of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, cast

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan import observers
from actors.scan.reading import Matching, Reading
from actors.scan.record import found_in, settle_owners, take
from chains.base import Block, BlockScan, ChainError, ProviderError, Transfer
from chains.family import HiddenReader, Reader
from chains.net.budget import BudgetSpentError, part
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import traits_of
from models.db.base import transaction
from models.deposits import cursors, probes
from models.deposits import rows as deposits
from models.deposits.cursors import Cursor
from models.deposits.probes import TakenBack
from models.deposits.rows import Owner
from models.treasury import addresses

log = structlog.get_logger()

INVOICES_PER_STEP: Final = 50
AGAIN_PER_STEP: Final = 10
WALLETS_PER_STEP: Final = 5
# A step passes over this many addresses at which providers failed; after more failures the providers count as down.
FAILURES_PER_STEP: Final = 3
# After a reorg a transaction may take this long to be in a block again.
RETURN_S: Final = 7_200
# A block of this age that no provider can trace counts as one that shows no transfers.
TRACE_PATIENCE_S: Final = 600
# The part of a step that a trace may take. One that takes more has failed.
TRACE_SHARE: Final = 0.5


@network_tick("probes")
def probe_balances(ctx: Context, network: Network, chain: Reader) -> None:
    """Probe addresses of reversed deposits, of open invoices that await the coin, and of a few wallets."""
    if not traits_of(network).has_hidden_transfers:
        return
    pair = next((pair for pair in ctx.catalogue.pairs_on(network.code) if pair.contract is None), None)
    cursor = cursors.read(network.code)
    if pair is None or cursor is None:
        return
    further = RETURN_S * 1000 // network.block_time_ms
    due = [
        *probes.due_again(network.code, scanned=cursor.height, further=further, limit=AGAIN_PER_STEP),
        *probes.due_invoices(network.code, family=network.family, currency=pair.currency, limit=INVOICES_PER_STEP),
        *probes.due_wallets(network.code, limit=WALLETS_PER_STEP),
    ]
    owners = deposits.match(network.family, due)
    for address in set(due) - owners.keys():
        # No one is left to credit; without a note it would take a turn in each step.
        probes.note_reading(network.code, address, kind="invoice", height=cursor.height)
    # One that takes whole steps has its turn after all others, whatever made it due.
    turn = [
        (owners[each], last) for each, last in probes.longest_ago_first(network.code, due).items() if each in owners
    ]
    failures = 0
    for number, (owner, last) in enumerate(turn):
        # The trait has_hidden_transfers means that the family's reader is one.
        probe = _Probe(ctx, network, cast("HiddenReader", chain), pair, owner, last=last, is_first=number == 0)
        try:
            probe.run(cursor)
        except BudgetSpentError as error:
            if number == 0:
                # It takes a whole step by itself: the others have their turn before it is tried again.
                probe.note_failure(error)
            raise
        except ProviderError as error:
            # A payer chooses the block of a payment, and thereby the cost of tracing it.
            probe.note_failure(error)
            failures += 1
            if failures == FAILURES_PER_STEP:
                raise


class _Probe:
    """A comparison of one address's balance, as one provider shows it, with its rows."""

    def __init__(
        self,
        ctx: Context,
        network: Network,
        chain: HiddenReader,
        pair: Pair,
        owner: Owner,
        *,
        last: str,
        is_first: bool,
    ) -> None:
        """Compare an owner's address.

        last: the mark of the provider that was asked last; another one is asked. is_first: no other address was
        compared in this step.
        """
        self._ctx, self._network, self._chain, self._pair = ctx, network, chain, pair
        self._address, self._owner, self._last, self._is_first = owner.address, owner, last, is_first
        # The mark of the provider that answered, and the balances in answers, by block.
        self._read_by: str | None = None
        self._units: dict[str, int] = {}

    def run(self, cursor: Cursor) -> None:
        if addresses.is_in_motion(self._network.code, [self._address]):
            self._note()  # Our own gas, or a sweep, may be in or not: the balance explains nothing now.
            return
        deposited = self._deposited(cursor.height)
        if self._surplus(cursor.height, cursor.hash) <= 0:
            self._note_explained(cursor, deposited)
            return
        block = self._grown_in(cursor)
        if block is not None:
            self._explain(block, cursor)
            settle_owners(self._ctx, [(self._owner.kind, self._owner.id)])
        self._note()

    def note_failure(self, error: ChainError) -> None:
        """Note a provider's failure, so that the other addresses have their turn first."""
        self._note()
        log.warning("probe.failed", network=self._network.code, address=self._address, problem=str(error))

    def _note_explained(self, cursor: Cursor, deposited: int) -> None:
        """Note that the balance is explained up to a block.

        Not if the scan was moved back below it, or the deposits that explain it have changed meanwhile.
        """
        with transaction():
            is_same = (
                cursors.is_scanned(self._network.code, height=cursor.height, block_hash=cursor.hash)
                and self._deposited(cursor.height) == deposited
            )
            self._note(cursor.height if is_same else None)

    def _note(self, height: int | None = None) -> None:
        network, kind = self._network.code, self._owner.kind
        if self._read_by is None:
            probes.note(network, self._address, kind=kind)
        else:
            read_by = self._read_by if self._chain.providers > 1 else ""
            probes.note_reading(network, self._address, kind=kind, height=height, read_by=read_by)

    def _surplus(self, height: int, block_hash: str) -> int:
        """Return the balance's surplus after a block over deposits and own spends up to it, in token units."""
        network, currency = self._network.code, self._pair.currency
        deposited = self._deposited(height)
        moved = addresses.moved_native_units(network, self._address, currency, height=height)
        known = self._pair.from_ledger(deposited, self._ctx.catalogue.scale(currency)) + moved
        return self._balance(block_hash) - known

    def _balance(self, block_hash: str) -> int:
        if block_hash not in self._units:
            balance = self._chain.balance(self._address, block_hash, last=self._last)
            self._read_by = balance.read_by
            self._units[block_hash] = balance.units
        return self._units[block_hash]

    def _rest(self, block: Block, cursor: Cursor) -> int:
        """Return the surplus after a block that is still there at the cursor.

        A deposit in a later block may have the coin of this one.
        """
        return min(self._surplus(block.height, block.hash), self._surplus(cursor.height, cursor.hash))

    def _deposited(self, height: int) -> int:
        return probes.deposited_units(self._network.code, self._address, self._pair.currency, height=height)

    def _grown_in(self, cursor: Cursor) -> Block | None:
        """Return the first kept block with a surplus; before it the balance was explained, as far as nodes know."""
        after = probes.explained_height(self._network.code, self._address) or 0
        kept = [
            read_one for read_one in cursors.kept_blocks(self._network.code) if after < read_one[0] <= cursor.height
        ]
        newest, oldest = 0, len(kept) - 1
        while newest < oldest:
            middle = (newest + oldest + 1) // 2
            if self._has_surplus(*kept[middle]):
                newest = middle
            else:
                oldest = middle - 1
        if not kept:
            return None
        height, block_hash = kept[newest]
        block = self._chain.block(height)
        return block if isinstance(block, Block) and block.hash == block_hash else None

    def _has_surplus(self, height: int, block_hash: str) -> bool:
        try:
            return self._surplus(height, block_hash) > 0
        except ProviderError:
            return False  # Nodes forget old balances; the surplus is then dated later than it came.

    def _explain(self, block: Block, cursor: Cursor) -> None:
        """Record the cause of a block's surplus: a missed transfer, a contract's transfer, or an unknown one."""
        ours = Matching(self._network)
        try:
            scan = self._chain.reread(block.height, ours, but_by=cursors.read_by(self._network.code, block.height))
        except ProviderError as error:
            # The address is probed again later; the other addresses have their turn.
            log.warning("probe.no_second_reading", network=self._network.code, height=block.height, problem=str(error))
            return
        if not isinstance(scan, BlockScan) or scan.block.hash != block.hash:
            return
        observers.note_late(Reading(ctx=self._ctx, network=self._network, chain=self._chain, scan=scan, ours=ours))
        # Returning coin is the deposit that it was: its shares and refunds are not paid again. First of all a transfer
        # takes over the deposit of its sum. Before the other transfers come sums that were paid out.
        scale = self._ctx.catalogue.scale(self._pair.currency)
        traced = self._traced(block)
        sums = {self._pair.from_ledger(each.units, scale) for each in self._taken_back()}
        self._take(block, cursor, [transfer for transfer in traced if transfer.units in sums])
        self._take_again(block, cursor, self._taken_back(only_paid_out=True))
        self._take(block, cursor, traced)
        self._take_again(block, cursor, self._taken_back())
        rest = self._rest(block, cursor)
        if rest > 0:
            log.warning("deposit.without_transaction", network=self._network.code, height=block.height, units=rest)
            self._take(block, cursor, [self._unnamed(block, rest)])

    def _traced(self, block: Block) -> Collection[Transfer]:
        """Return the transfers in a block's trace; empty if no provider could trace it for TRACE_PATIENCE_S."""
        try:
            # No later step leaves it more time than one that began with it.
            with part(seconds=self._ctx.settings.rpc_step_s * TRACE_SHARE, is_rest_enough=self._is_first):
                return self._chain.internal_transfers(block, self._address)
        except ProviderError as error:
            if not probes.is_older(block.time, seconds=TRACE_PATIENCE_S):
                raise
            log.warning("probe.not_traced", network=self._network.code, height=block.height, problem=str(error))
            return ()

    def _take(self, block: Block, cursor: Cursor, transfers: Iterable[Transfer]) -> None:
        """Record traced transfers up to the balance's surplus: a trace alone is no proof."""
        for transfer in transfers:
            self._record(block, cursor, transfer)

    def _take_again(self, block: Block, cursor: Cursor, returned: Iterable[TakenBack]) -> None:
        """Record taken-back deposits up to the balance's surplus under their own names, in their own blocks if kept."""
        scale = self._ctx.catalogue.scale(self._pair.currency)
        for each in returned:
            transfer = Transfer(
                txid=each.txid,
                ordinal=each.ordinal,
                currency=self._pair.currency,
                units=self._pair.from_ledger(each.units, scale),
                sender=each.sender,
                recipient=self._address,
                depth_min=each.depth_min,
            )
            self._record(block, cursor, transfer, earlier=each)

    def _record(self, block: Block, cursor: Cursor, transfer: Transfer, *, earlier: TakenBack | None = None) -> None:
        """Record a transfer, if the surplus after a block covers it and the chain still has the block.

        earlier: the deposit that returns; it is recorded in its own block if the chain still has that one.
        """
        known = self._deposited(block.height)
        if transfer.units > self._rest(block, cursor):
            return
        own = None if earlier is None else self._kept(earlier, block)
        within = own or block
        with transaction():
            if not all(
                cursors.is_scanned(self._network.code, height=each.height, block_hash=each.hash)
                for each in (block, within)
            ):
                return
            if self._deposited(block.height) != known:
                # The scan or its second reading has recorded some of it meanwhile; the next step compares again.
                return
            if (probes.explained_height(self._network.code, self._address) or 0) >= block.height:
                # Witnesses have dated its coin to a later block meanwhile.
                return
            deposit = found_in(self._ctx, self._network, within, transfer, self._owner)
            probes.name_again(deposit)
            take(self._ctx, self._chain, deposit)

    def _kept(self, earlier: TakenBack, upto: Block) -> Block | None:
        """Return the block of a deposit that a reorg or rewind took back, if the chain has it, up to another block.

        The block of a denied one was an invention, or one provider's word.
        One provider may show a block that a reorg replaced. If the scan no longer keeps it, more have to show it.
        """
        if earlier.is_denied or earlier.block_height > upto.height:
            return None
        kept = cursors.kept_hash(self._network.code, earlier.block_height)
        if kept is not None and kept != earlier.block_hash:
            return None
        own = self._chain.block(earlier.block_height)
        if not isinstance(own, Block) or own.hash != earlier.block_hash:
            return None
        answer = None if kept is not None else self._chain.agreement(own.height, own.hash)
        return own if answer is None or answer.same > answer.other else None

    def _taken_back(self, *, only_paid_out: bool = False) -> list[TakenBack]:
        """Return the address's hidden deposits that a reorg, a rewind or a denial took back."""
        reversals = probes.taken_back(self._network.code, self._address, self._pair.currency, self._owner.id)
        return [each for each in reversals if each.is_paid_out or not only_paid_out]

    def _unnamed(self, block: Block, units: int) -> Transfer:
        return Transfer(
            txid="",
            ordinal=probes.ordinal(self._network.code, self._address, block.height),
            currency=self._pair.currency,
            units=units,
            sender="",
            recipient=self._address,
        )

"""Compares balances with deposits, and books coin that contracts passed on. Notified by the scheduler, by network.

If a family has no such transfers, no provider is asked.
The chain shows such coin in no transaction and no log. If a balance is more than its deposits explain, the probe finds
the block in which it grew. That block is read again by another provider, then traced, and a surplus that remains
unexplained becomes a deposit of its own (actors.scan.surplus).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, cast

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.scan import kept, observers, totals
from actors.scan.reading import Matching
from actors.scan.record import settle_owners
from actors.scan.surplus import Booking
from chains.base import NATIVE, Block, BlockScan, ChainError, ProviderError, Transfer
from chains.family import HiddenReader, Reader
from chains.net.budget import BudgetSpentError, part
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import traits_of
from models.db.base import transaction
from models.deposits import cursors, probes
from models.deposits import rows as deposits
from models.deposits.cursors import Cursor
from models.deposits.rows import Owner
from models.spends import signing_stops
from models.treasury import addresses

log = structlog.get_logger()

INVOICES_PER_STEP: Final = 50
OPEN_PER_STEP: Final = 50
AGAIN_PER_STEP: Final = 10
WALLETS_PER_STEP: Final = 5
# A step passes over this many addresses at which providers failed; after more failures the providers count as down.
FAILURES_PER_STEP: Final = 3
# After a reorg a transaction may take this long to be in a block again.
RETURN_S: Final = 7_200
# A block of this age that no provider can trace, or that no other one shows, counts as one without transfers.
TRACE_PATIENCE_S: Final = 600
# Other providers are asked about this many payments that the second reading of a block adds, the largest first.
LATE_ASKED_MAX: Final = 20
# The part of a step that a trace may take. One that takes more has failed.
TRACE_SHARE: Final = 0.5


@network_tick("probes")
def probe_balances(ctx: Context, network: Network, chain: Reader) -> None:
    """Probe addresses of reversed deposits, of invoices that await the coin, with a surplus, and of a few wallets."""
    if not traits_of(network).has_hidden_transfers:
        return
    pair = next((pair for pair in ctx.catalogue.pairs_on(network.code) if pair.contract is None), None)
    cursor = cursors.read(network.code)
    if pair is None or cursor is None:
        return
    probes.pass_invoices(network.code, family=network.family, currency=pair.currency)
    further = RETURN_S * 1000 // network.block_time_ms
    due = [
        *probes.due_again(network.code, scanned=cursor.height, further=further, limit=AGAIN_PER_STEP),
        *probes.due_invoices(network.code, family=network.family, currency=pair.currency, limit=INVOICES_PER_STEP),
        *probes.due_open(network.code, limit=OPEN_PER_STEP),
        *probes.due_wallets(network.code, limit=WALLETS_PER_STEP),
    ]
    owners = deposits.match(network.family, due)
    for address in set(due) - owners.keys():
        # No one is left to credit; without a note it would take a turn in each step.
        probes.note_reading(network.code, address, kind="invoice", height=cursor.height, block_time=cursor.block_time)
    # One that takes whole steps has its turn after all others, whatever made it due.
    turn = [
        (owners[each], last) for each, last in probes.longest_ago_first(network.code, due).items() if each in owners
    ]
    # The trait has_hidden_transfers means that the family's reader is one.
    _probe_all(ctx, network, cast("HiddenReader", chain), pair, turn, cursor)


def _probe_all(
    ctx: Context,
    network: Network,
    chain: HiddenReader,
    pair: Pair,
    turn: Sequence[tuple[Owner, str]],
    cursor: Cursor,
) -> None:
    """Probe addresses in their turn. Raises ProviderError after FAILURES_PER_STEP failures, and BudgetSpentError.

    turn: the owners, each with the mark of the provider that was asked last about its address.
    """
    failures = 0
    for number, (owner, last) in enumerate(turn):
        probe = _Probe(ctx, network, chain, pair, owner, last=last, is_first=number == 0)
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
        # The time of the block after which the balance had a surplus.
        self._surplus_at: datetime | None = None

    def run(self, cursor: Cursor) -> None:
        if addresses.is_in_motion(self._network.code, [self._address]):
            self._note()  # Our own gas, or a sweep, may be in or not: the balance explains nothing now.
            return
        deposited = self._deposited(cursor.height)
        if self._surplus(cursor.height, cursor.hash) <= 0:
            self._note_explained(cursor, deposited)
            return
        self._surplus_at = cursor.block_time
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
            self._note(cursor if is_same else None)

    def _note(self, explained: Cursor | None = None) -> None:
        """Note that the address was looked at. explained: the block up to which the reading was explained, if it was.

        With a surplus it stays due until two readings of later blocks are explained.
        """
        network, owner = self._network.code, self._owner
        if self._read_by is None:
            probes.note(network, self._address, kind=owner.kind, owner_id=owner.id, surplus_at=self._surplus_at)
            return
        probes.note_reading(
            network,
            self._address,
            kind=owner.kind,
            owner_id=owner.id,
            surplus_at=self._surplus_at,
            height=None if explained is None else explained.height,
            block_time=None if explained is None else explained.block_time,
            read_by=self._read_by if self._chain.providers > 1 else "",
        )

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
        """Return the first block with a surplus; before it the balance was explained, as far as nodes know.

        A kept block is the scan's own, so that no provider can hide coin by another block of its height.
        """
        code = self._network.code
        after = probes.explained_height(code, self._address)
        if after is None:
            after = (cursors.started_height(code) or 0) - 1
        blocks = [each for each in cursors.kept_blocks(code) if after < each[0] <= cursor.height]
        if not blocks:
            return None
        newest, oldest = 0, len(blocks) - 1
        while newest < oldest:
            middle = (newest + oldest + 1) // 2
            if self._has_surplus(*blocks[middle]):
                newest = middle
            else:
                oldest = middle - 1
        grown = kept.block(self._network, self._chain, *blocks[newest])
        is_oldest = newest == len(blocks) - 1
        return self._grown_below(grown, after) if grown is not None and is_oldest else grown

    def _grown_below(self, grown: Block, after: int) -> Block:
        """Return the first block with a surplus above a height, up to one that has it.

        The scan no longer keeps the blocks between them, so that each counts if more providers show it than another.
        """
        low = after
        while low + 1 < grown.height:
            middle = (low + grown.height) // 2
            block = kept.agreed(self._chain, middle)
            if block is not None and self._has_surplus(block.height, block.hash):
                grown = block
            else:
                low = middle
        return grown

    def _has_surplus(self, height: int, block_hash: str) -> bool:
        try:
            return self._surplus(height, block_hash) > 0
        except ProviderError:
            return False  # Nodes forget old balances; the surplus is then dated later than it came.

    def _explain(self, block: Block, cursor: Cursor) -> None:
        """Record the cause of a block's surplus: a missed transfer, a contract's transfer, or an unknown one."""
        is_read = self._read_again(block)
        if is_read is None:
            return
        deposited, units = self._deposited(cursor.height), self._rest(block, cursor)
        if units <= 0:
            return
        traced = self._traced(block) if is_read else ()
        Booking(
            self._ctx,
            self._network,
            self._chain,
            self._pair,
            self._owner,
            block=block,
            cursor=cursor,
            deposited=deposited,
            units=units,
        ).run(traced)

    def _read_again(self, block: Block) -> bool | None:
        """Note a block as another provider shows it; return None if its surplus has to wait.

        False if no other provider has shown it for TRACE_PATIENCE_S. Another one is asked each time, since it may hide
        or invent a payment.
        """
        code, ours = self._network.code, Matching(self._network)
        try:
            scan = self._chain.reread(
                block.height,
                ours,
                but_by=cursors.read_by(code, block.height),
                last=probes.reread_by(code, self._address),
                block_hash=block.hash,
            )
        except ProviderError as error:
            # The address is probed again later; the other addresses have their turn.
            log.warning("probe.no_second_reading", network=code, height=block.height, problem=str(error))
            scan = None
        if not isinstance(scan, BlockScan):
            return False if self._is_out_of_patience(block) else None
        probes.note_rereading(code, self._address, kind=self._owner.kind, read_by=scan.read_by)
        again = observers.note_again(self._ctx, self._network, self._chain, self._undenied(scan), ours)
        # A departure that no row explains may be our own gas: its movements are booked when it has become a spend.
        return None if again.left.unexplained else True

    def _is_out_of_patience(self, block: Block) -> bool:
        """Return True if a surplus is booked without a second reading of its block.

        Not while the network is stopped: a spend that the database lost may have brought it.
        """
        is_old = probes.is_older(block.time, seconds=TRACE_PATIENCE_S)
        return is_old and signing_stops.read(self._network.code) is None

    def _undenied(self, scan: BlockScan) -> BlockScan:
        """Return a second reading without new payments of coin to the address that two providers deny.

        One provider could otherwise have each surplus used up by payments that it invents. Those beyond LATE_ASKED_MAX
        are left to the other readings of the block.
        """
        if self._chain.providers == 1:
            return scan
        code, block = self._network.code, scan.block
        known = {(each.txid, each.ordinal) for each in deposits.in_block(code, block.height, block.hash)}
        late = [
            each
            for each in scan.transfers
            if each.ordinal == NATIVE and each.recipient == self._address and (each.txid, NATIVE) not in known
        ]
        largest = sorted(late, key=lambda each: each.units, reverse=True)[:LATE_ASKED_MAX]
        kept = [each for each in largest if not totals.is_denied(self._chain.listing(totals.shown(block, each)))]
        return replace(scan, transfers=tuple(each for each in scan.transfers if each not in late or each in kept))

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

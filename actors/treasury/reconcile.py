"""Compares our addresses' balances with our rows, at a scanned block. Notified by the scheduler.

The hot wallet has to match to the last unit, except for amounts that spends under way may have moved; deposit addresses
hold at least their unswept deposits; the cold address at least what was sent there. If a difference remains for several
checks in a row, at rising heights, and two providers report it, the network's payouts are frozen until an operator has
looked and lifts the freeze. A surplus that only the balance shows is the gateway's own. Balances of a block that is not
scanned yet wait for the scan.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.treasury.comparison import Coin, ask, coins_of, compared, taken
from chains.base import WITNESSES_MIN, ChainError
from chains.family import Reader
from core.catalogue.catalogue import Network
from models.deposits import cursors
from models.payouts import freezes
from models.treasury import reconciliation, snapshots
from models.treasury.reconciliation import MISSES_MAX, Books, Finding
from models.treasury.snapshots import Balances

log = structlog.get_logger()

# The number of requests allowed for witnesses of a surplus that only the balance shows.
ADOPTION_REQUESTS: Final = 100


@network_tick("reconcile")
def reconcile(ctx: Context, network: Network, chain: Reader) -> None:
    """Compare a network's addresses with their rows, once for each block with known balances."""
    kept = snapshots.read(network.code)
    if kept is not None:
        _take_up(ctx, network, chain, kept)
        return
    books = reconciliation.read_books(network.code)
    if books is None or books.cursor.height <= reconciliation.last_height(network.code):
        return
    # If payouts may be frozen, two providers are needed where there are as many: one alone could stop all payouts.
    witnesses = WITNESSES_MIN if reconciliation.is_near_freeze(network.code) else 1
    balances = taken(ctx, network, chain, books, witnesses=witnesses)
    if balances.block_hash == books.cursor.hash:
        _judge_all(ctx, network, chain, books, balances)
    elif balances.height > reconciliation.last_height(network.code):
        snapshots.keep(network.code, balances)


def _take_up(ctx: Context, network: Network, chain: Reader, kept: Balances) -> None:
    """Compare a kept snapshot once its block is scanned; drop it if the scan found another block."""
    block, cursor = snapshots.scanned_block(network.code, kept), cursors.read(network.code)
    if block is None:
        if cursor is not None and cursor.height >= kept.height:
            snapshots.drop(network.code)
        return
    books = reconciliation.read_books(network.code, at=block)
    if books is not None:
        _judge_all(ctx, network, chain, books, kept)


def _judge_all(ctx: Context, network: Network, chain: Reader, books: Books, balances: Balances) -> None:
    findings = compared(ctx, network, books, balances)
    # Dropped first, since a finding may need its balance from more witnesses, which keeps a new snapshot.
    snapshots.drop(network.code)
    for each in findings or ():
        _judge(ctx, network, chain, books, balances, each)


def _judge(ctx: Context, network: Network, chain: Reader, books: Books, balances: Balances, finding: Finding) -> None:
    """Record a comparison; freeze payouts if it keeps failing."""
    surplus = finding.chain_units - finding.expected_units if finding.place == "hot" else 0
    coin = next(coin for coin in coins_of(ctx, network) if coin.currency == finding.currency)
    if surplus > 0 and (coin.pair is None or not reconciliation.was_compared(network.code, finding.currency)):
        # The scan does not look for this coin, or it was there before the first comparison. Adopted before the finding
        # is noted, since after that the comparison would no longer count as the first.
        if _adopt(ctx, network, chain, books, balances, finding, coin):
            reconciliation.note(network.code, finding)
        return
    misses = reconciliation.note(network.code, finding)
    if not misses:
        return
    log.warning("reconciliation.differs", network=network.code, misses=misses, detail=finding.detail)
    if finding.place == "cold" or misses < MISSES_MAX:
        return
    if surplus > 0 and coin.is_gas:
        # A contract passed on gas coin, which only the balance shows.
        _adopt(ctx, network, chain, books, balances, finding, coin)
        return
    if balances.witnesses < WITNESSES_MIN:
        # One provider reported this before two were required; the next comparison asks two.
        return
    log.error("reconciliation.froze_payouts", network=network.code, detail=finding.detail)
    freezes.freeze("network", network.code, reason=finding.detail, frozen_by=freezes.RECONCILER)


def _adopt(
    ctx: Context, network: Network, chain: Reader, books: Books, balances: Balances, finding: Finding, coin: Coin
) -> bool:
    """Adopt a surplus as the gateway's own; False if too few providers report it or a reorg took its block.

    Only the balance shows a surplus, so that two providers have to report it where there are two. False also if they
    report it at a block that is not scanned yet: it is adopted once that block is scanned.
    """
    if balances.witnesses < WITNESSES_MIN:
        try:
            with chain.budget(seconds=ctx.settings.rpc_step_s, requests=ADOPTION_REQUESTS):
                balances = ask(chain, books, [("hot", coin, books.hot)], witnesses=WITNESSES_MIN)
        except ChainError as error:
            log.warning("reconciliation.surplus_unconfirmed", network=network.code, error=str(error))
            return False
    if balances.block_hash != books.cursor.hash:
        snapshots.keep(network.code, balances)
        return False
    chain_units = next(
        each.units for each in balances.holdings if (each.place, each.currency) == ("hot", coin.currency)
    )
    surplus = coin.to_ledger(chain_units) - finding.expected_units
    if surplus <= 0:
        return False
    log.warning("reconciliation.surplus_found", network=network.code, detail=finding.detail)
    return reconciliation.adopt(network.code, finding.currency, surplus, books, origin="balance")

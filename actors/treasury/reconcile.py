"""Compares what our addresses hold with what our rows say, at a block that was scanned. Rung by the scheduler.

The hot wallet has to be right to the last unit, but for what spends under way may have moved; deposit addresses hold at
least what was not swept; the cold address at least what was sent there. What stays wrong for some checks in a row, at
rising heights, freezes the network's payouts: an operator has to look, and to lift it. Coin that nobody but the balance
knows of is the gateway's own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.signer.intents import as_meant, intent_of
from chains import registry
from chains.base import FateKind, ProviderError
from chains.family import Reader, Spender
from core.catalogue.catalogue import Network, Pair
from core.money import format_coin, rescale_down
from models.deposits import balances as probes
from models.payouts import freezes
from models.spends import rows as spends
from models.spends.rows import SpendRow
from models.treasury import own_addresses as treasury
from models.treasury import reconciliation, sweeps
from models.treasury.reconciliation import MISSES_MAX, Books, Finding, Flow
from models.treasury.rows import Place
from models.treasury.sweeps import Unswept

log = structlog.get_logger()

ADDRESSES_PER_STEP: Final = 20
# Providers that have to tell of what only the balance shows, where there are as many; and what asking them may take.
WITNESSES_MIN: Final = 2
ADOPTION_REQUESTS: Final = 100
# More spends than this in no known block: whoever follows them is behind, and comes first.
OPEN_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """A coin that our addresses on a network may hold; pair is None for the gas coin if it is not offered."""

    currency: str
    pair: Pair | None
    decimals: int
    scale: int
    is_gas: bool

    def to_ledger(self, units: int) -> int:
        """Express token units in the ledger's; what is too fine for it counts for nothing."""
        return rescale_down(units, self.decimals, self.scale)


def coins_of(ctx: Context, network: Network) -> list[Coin]:
    """Return every coin that our addresses on a network may hold."""
    found = [
        Coin(
            currency=pair.currency,
            pair=pair,
            decimals=pair.decimals,
            scale=ctx.catalogue.scale(pair.currency),
            is_gas=pair.contract is None,
        )
        for pair in ctx.catalogue.pairs_on(network.code)
    ]
    if not any(coin.is_gas for coin in found):
        scale = ctx.catalogue.scale(network.gas_currency)
        found.append(Coin(currency=network.gas_currency, pair=None, decimals=scale, scale=scale, is_gas=True))
    return found


@network_tick("reconcile")
def reconcile(ctx: Context, network: Network, _chain: Reader) -> None:
    """Compare a network's addresses with the rows about them, once for each block that the scan stands on."""
    books = reconciliation.read_books(network.code)
    if books is None or books.cursor.height <= reconciliation.last_height(network.code):
        return
    for found in compare(ctx, network, books) or ():
        _judge(ctx, network, books, found)


def compare(ctx: Context, network: Network, books: Books) -> list[Finding] | None:
    """Hold the chain against the books of a network; nothing is kept of it. Raises ProviderError.

    None where it cannot be told: too much is under way, or a reorg took the block meanwhile.
    """
    settings = ctx.settings
    with registry.reader(network, settings).budget(seconds=settings.rpc_step_s, requests=settings.rpc_step_requests):
        findings = _Check(ctx, network, books).run()
    return findings if reconciliation.is_scanned(network.code, books.cursor) else None


def _judge(ctx: Context, network: Network, books: Books, found: Finding) -> None:
    """Record a comparison; freeze payouts if it keeps failing."""
    surplus = found.chain_units - found.expected_units if found.place == "hot" else 0
    coin = next(coin for coin in coins_of(ctx, network) if coin.currency == found.currency)
    if surplus > 0 and (coin.pair is None or not reconciliation.was_compared(network.code, found.currency)):
        # The scan does not look for this coin; or it was there before anything was compared. Adopted before it is kept,
        # after which it would be no first comparison any more.
        if _adopt(ctx, network, books, found, coin):
            reconciliation.note(network.code, found)
        return
    misses = reconciliation.note(network.code, found)
    if not misses:
        return
    log.warning("reconciliation.differs", network=network.code, misses=misses, detail=found.detail)
    if found.place == "cold" or misses < MISSES_MAX:
        return
    if surplus > 0 and coin.is_gas:
        # A contract passed it on, which only the balance shows.
        _adopt(ctx, network, books, found, coin)
        return
    log.error("reconciliation.froze_payouts", network=network.code, detail=found.detail)
    freezes.freeze("network", network.code, reason=found.detail, frozen_by=freezes.RECONCILER)


def _adopt(ctx: Context, network: Network, books: Books, found: Finding, coin: Coin) -> bool:
    """Take a surplus for the gateway's own; False if too few providers tell of it, or a reorg took its block.

    Nothing but the balance shows it, so that where there are two providers two have to tell that.
    """
    spender = registry.spender(network, ctx.settings)
    try:
        with registry.reader(network, ctx.settings).budget(seconds=ctx.settings.rpc_step_s, requests=ADOPTION_REQUESTS):
            held = coin.to_ledger(spender.balance_at(books.hot, coin.pair, books.cursor.hash, witnesses=WITNESSES_MIN))
    except ProviderError as error:
        log.warning("reconciliation.surplus_unconfirmed", network=network.code, error=str(error))
        return False
    surplus = held - found.expected_units
    if surplus <= 0:
        return False
    log.warning("reconciliation.surplus_found", network=network.code, detail=found.detail)
    return reconciliation.adopt(network.code, found.currency, surplus, books.cursor, origin="balance")


class _Check:
    """One comparison of one network."""

    def __init__(self, ctx: Context, network: Network, books: Books) -> None:
        self._ctx, self._network, self._books = ctx, network, books
        self._spender: Spender = registry.spender(network, ctx.settings)
        # What spends that wait may have taken from the hot wallet, and brought to it; by coin, in the ledger's units.
        self._may_have_left: defaultdict[str, int] = defaultdict(int)
        self._may_have_come: defaultdict[str, int] = defaultdict(int)

    def run(self) -> list[Finding] | None:
        """Return what was found; None if too much is under way to tell. Raises ProviderError."""
        moved = self._movements()
        if moved is None:
            return None
        coins = coins_of(self._ctx, self._network)
        found = [each for coin in coins if (each := self._hot(coin, moved[coin.currency])) is not None]
        found += self._deposits({coin.currency: coin for coin in coins})
        if self._books.cold is not None:
            found += [self._cold(coin, self._books.cold) for coin in coins]
        return found

    # The hot wallet ----------------------------------------------------------------------------------------

    def _movements(self) -> dict[str, int] | None:
        """Return what spends brought to the hot wallet less what they took, by coin, in the ledger's units."""
        books = self._books
        if len(books.open) > OPEN_MAX:
            log.warning("reconciliation.too_much_open", network=self._network.code)
            return None
        moved: defaultdict[str, int] = defaultdict(int)
        coins = {coin.currency: coin for coin in coins_of(self._ctx, self._network)}
        for flow in [*books.flows, *map(self._flow_of, books.open)]:
            if flow is None:
                continue
            if flow.currency in coins:
                moved[flow.currency] += rescale_down(flow.units, flow.decimals, coins[flow.currency].scale)
            gas = coins[self._network.gas_currency]
            moved[gas.currency] -= gas.to_ledger(flow.fee_units)
        return moved

    def _flow_of(self, spend: SpendRow) -> Flow | None:
        """Return what a spend did whose row does not tell its block: the chain is asked. None while it did nothing."""
        attempts = spends.attempts_of(spend.id)
        fate = self._spender.fate(
            intent_of(spend),
            slot=spend.slot,
            txids=tuple(attempt.txid for attempt in attempts),
            depth=self._network.maturity,
        )
        fate = as_meant(self._network, spend, fate, attempts)
        if fate.kind is FateKind.WAITING:
            self._note_waiting(spend, max((each.ceiling_units for each in attempts), default=0))
        if fate.kind is not FateKind.INCLUDED or fate.height > self._books.cursor.height:
            return None
        is_out = spend.sender == self._books.hot
        [output] = fate.outputs
        left, arrived = output.left_units, output.arrived_units
        if fate.is_success:
            left = arrived = spend.token_units
        return Flow(
            spend.currency,
            spend.decimals,
            (0 if spend.recipient != self._books.hot else arrived) - (left if is_out else 0),
            fate.fee_units if is_out else 0,
        )

    def _note_waiting(self, spend: SpendRow, fee_units: int) -> None:
        """Keep what a spend may have done where the node that tells balances is ahead of those that tell of spends."""
        coins = {coin.currency: coin for coin in coins_of(self._ctx, self._network)}
        coin, gas = coins.get(spend.currency), coins[self._network.gas_currency]
        units = 0 if coin is None else rescale_down(spend.token_units, spend.decimals, coin.scale)
        if spend.sender == self._books.hot:
            self._may_have_left[spend.currency] += units
            self._may_have_left[gas.currency] += gas.to_ledger(fee_units)
        else:
            self._may_have_come[spend.currency] += units

    def _hot(self, coin: Coin, moved_units: int) -> Finding | None:
        """Compare the hot wallet's coin; None while what differs may be what the spends that wait have done."""
        books = self._books
        expected = books.topup_units.get(coin.currency, 0) + moved_units
        expected -= books.written_off_units.get(coin.currency, 0)
        held = coin.to_ledger(self._spender.balance_at(books.hot, coin.pair, books.cursor.hash))
        # What one provider alone tells of may have come or not.
        may_have_come = self._may_have_come[coin.currency] + books.doubted_units.get(coin.currency, 0)
        may_be = range(-self._may_have_left[coin.currency], may_have_come + 1)
        if held != expected and held - expected in may_be:
            return None
        return self._finding(coin, "hot", books.hot, held=held, expected=expected, is_sound=held == expected)

    # Elsewhere ---------------------------------------------------------------------------------------------

    def _deposits(self, coins: dict[str, Coin]) -> list[Finding]:
        """Compare some deposit addresses, in rotation, those that were found short first."""
        code, height = self._network.code, self._books.cursor.height
        page = sweeps.walk(code, "reconcile", family=self._network.family, limit=ADDRESSES_PER_STEP, height=height)
        worst: dict[str, Finding] = {}
        for each in [*self._short_before(coins), *page]:
            coin = coins.get(each.currency)
            kept = worst.get(each.currency)
            if coin is None or (kept is not None and kept.detail):
                continue
            found = self._deposit(coin, each)
            if found is not None:
                worst[each.currency] = found
        return list(worst.values())

    def _short_before(self, coins: dict[str, Coin]) -> list[Unswept]:
        found = []
        for currency in coins:
            address = reconciliation.short_address(self._network.code, currency)
            if address:
                found += sweeps.unswept_at(self._network.code, currency, address, height=self._books.cursor.height)
        return found

    def _deposit(self, coin: Coin, each: Unswept) -> Finding | None:
        """Compare one address; None while our own spends make it uncertain what it holds."""
        code, books = self._network.code, self._books
        expected = each.units
        if coin.is_gas:
            if treasury.is_in_motion(code, [each.address]):
                return None
            # Gas for its tokens is paid from the same coin.
            come = probes.deposited_units(
                code, each.address, coin.currency, height=books.cursor.height, only_confirmed=True
            )
            moved = treasury.moved_native_units(code, each.address, coin.currency, height=books.cursor.height)
            expected = come + coin.to_ledger(moved)
        held = coin.to_ledger(self._spender.balance_at(each.address, coin.pair, books.cursor.hash))
        return self._finding(coin, "deposits", each.address, held=held, expected=expected, is_sound=held >= expected)

    def _cold(self, coin: Coin, cold: str) -> Finding:
        sent = sum(
            rescale_down(flow.units, flow.decimals, coin.scale)
            for flow in self._books.cooled
            if flow.currency == coin.currency
        )
        expected = max(0, sent - self._books.returned_units.get(coin.currency, 0))
        held = coin.to_ledger(self._spender.balance_at(cold, coin.pair, self._books.cursor.hash))
        return self._finding(coin, "cold", cold, held=held, expected=expected, is_sound=held >= expected)

    def _finding(self, coin: Coin, place: Place, address: str, *, held: int, expected: int, is_sound: bool) -> Finding:
        height, name = self._books.cursor.height, {"hot": "hot wallet", "deposits": "deposit address"}
        detail = (
            f"{coin.currency} on {self._network.code}: the {name.get(place, 'cold address')} {address} should hold"
            f" {_shown(expected, coin.scale)} after block {height} and holds {_shown(held, coin.scale)}"
        )
        return Finding(
            currency=coin.currency,
            place=place,
            height=height,
            chain_units=held,
            expected_units=expected,
            detail="" if is_sound else detail,
            address="" if is_sound else address,
        )


def _shown(units: int, scale: int) -> str:
    return f"-{format_coin(-units, scale)}" if units < 0 else format_coin(units, scale)

"""Compares balances on the chain with the books. Called by actors.treasury.reconcile and cli.recovery.

    balances = taken(ctx, network, chain, books)
    findings = compared(ctx, network, books, balances)

The books have to be those of the balances' block; if no node reports old balances, that block is scanned later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never
from uuid import UUID

import structlog

from actors.context import Context
from actors.signer.intents import as_meant, case_of
from actors.treasury import coin_books
from chains import registry
from chains.base import Place as Asked
from chains.family import Reader, Spender
from chains.spending import FateKind
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import traits_of
from core.money import format_coin, rescale_down
from models.deposits import probes
from models.spends import rows as spends
from models.spends.outputs import Effect
from models.spends.rows import AttemptRow, SpendRow
from models.treasury import addresses, reconciliation, sweeps
from models.treasury.reconciliation import Books, Finding, Flow
from models.treasury.rows import Place
from models.treasury.snapshots import Balances, Holding

log = structlog.get_logger()

ADDRESSES_PER_STEP: Final = 20
# With more spends than this in no known block, the signer is behind in following them and has to catch up first.
OPEN_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin:
    """A coin that our addresses may hold on a network. A gas coin that is not offered has no `pair`."""

    currency: str
    pair: Pair | None
    decimals: int
    scale: int
    is_gas: bool

    def to_ledger(self, units: int) -> int:
        """Convert token units to ledger units, rounded down."""
        return rescale_down(units, self.decimals, self.scale)


def coins_of(ctx: Context, network: Network) -> list[Coin]:
    """Return the coins that our addresses may hold on a network."""
    offered = [
        Coin(
            currency=pair.currency,
            pair=pair,
            decimals=pair.decimals,
            scale=ctx.catalogue.scale(pair.currency),
            is_gas=pair.contract is None,
        )
        for pair in ctx.catalogue.pairs_on(network.code)
    ]
    if not any(coin.is_gas for coin in offered):
        scale = ctx.catalogue.scale(network.gas_currency)
        offered.append(Coin(currency=network.gas_currency, pair=None, decimals=scale, scale=scale, is_gas=True))
    return offered


def taken(ctx: Context, network: Network, chain: Reader, books: Books, *, witnesses: int = 1) -> Balances:
    """Read our places' balances from the chain, at the books' block if possible. Raises ChainError.

    witnesses: the number of providers that have to agree, if the network has as many.
    """
    if traits_of(network).spends_coins:
        return coin_books.taken(ctx, network, chain, books, witnesses=witnesses)
    coins = {coin.currency: coin for coin in coins_of(ctx, network)}
    places: list[tuple[Place, str, str]] = [("hot", currency, books.hot) for currency in coins]
    places += [("deposits", *each) for each in _deposits_in_turn(network, books, coins)]
    if books.cold is not None:
        places += [("cold", currency, books.cold) for currency in coins]
    asked = [(place, coins[currency], address) for place, currency, address in places]
    return ask(chain, books, asked, witnesses=witnesses)


def ask(chain: Reader, books: Books, places: list[tuple[Place, Coin, str]], *, witnesses: int = 1) -> Balances:
    """Read the balances of given places, at the books' block if possible. Raises ChainError."""
    asked = [Asked(address=address, pair=coin.pair) for _, coin, address in places]
    snapshot = chain.snapshot(asked, height=books.cursor.height, block_hash=books.cursor.hash, witnesses=witnesses)
    holdings = (
        Holding(place=place, currency=coin.currency, address=address, units=units)
        for (place, coin, address), units in zip(places, snapshot.units, strict=True)
    )
    return Balances(
        height=snapshot.height, block_hash=snapshot.block_hash, witnesses=witnesses, holdings=tuple(holdings)
    )


def _deposits_in_turn(network: Network, books: Books, coins: dict[str, Coin]) -> list[tuple[str, str]]:
    """Return the next deposit addresses in rotation, with their coins; first those found short before."""
    code, height = network.code, books.cursor.height
    short = ((currency, reconciliation.short_address(code, currency)) for currency in coins)
    page = sweeps.walk(code, "reconcile", family=network.family, limit=ADDRESSES_PER_STEP, height=height)
    turn = [(each.currency, each.address) for each in page if each.currency in coins]
    return list(dict.fromkeys([*((currency, address) for currency, address in short if address), *turn]))


def compared(ctx: Context, network: Network, books: Books, balances: Balances) -> list[Finding] | None:
    """Compare balances with the books of their block; write nothing. Raises ProviderError.

    None if no comparison is possible: too many spends are under way, or a reorg removed the block meanwhile.
    """
    if traits_of(network).spends_coins:
        return coin_books.compared(ctx, network, books, balances)
    findings = _Check(ctx, network, books).run(balances)
    return findings if reconciliation.is_scanned(network.code, books.cursor) else None


class _Check:
    """One comparison of one network."""

    def __init__(self, ctx: Context, network: Network, books: Books) -> None:
        self._ctx, self._network, self._books = ctx, network, books
        self._spender: Spender = registry.spender(network, ctx.settings)
        self._coins = {coin.currency: coin for coin in coins_of(ctx, network)}
        self._has_late_effects = traits_of(network).has_late_effects
        # The most that waiting spends may have taken from the hot wallet and brought to it; by coin, in ledger units.
        self._may_have_left: defaultdict[str, int] = defaultdict(int)
        self._may_have_come: defaultdict[str, int] = defaultdict(int)
        # Spends that moved nothing up to the books' block, according to the chain.
        self._waiting_ids: list[UUID] = []

    def run(self, balances: Balances) -> list[Finding] | None:
        """Return the findings; None if too many spends are under way. Raises ProviderError."""
        moved = self._movements()
        if moved is None:
            return None
        findings: list[Finding | None] = []
        deposits: dict[str, Finding] = {}
        for holding in balances.holdings:
            coin = self._coins.get(holding.currency)
            if coin is None:
                continue
            units = coin.to_ledger(holding.units)
            match holding.place:
                case "hot":
                    findings.append(self._hot(coin, units, moved[coin.currency]))
                case "cold":
                    findings.append(self._cold(coin, holding.address, units))
                case "deposits":
                    self._deposit(coin, holding.address, units, deposits)
                case _:
                    assert_never(holding.place)
        return [each for each in [*findings, *deposits.values()] if each is not None]

    # The hot wallet ----------------------------------------------------------------------------------------

    def _movements(self) -> dict[str, int] | None:
        """Return the net amount that spends brought to the hot wallet, by coin, in ledger units."""
        books = self._books
        if len(books.open) > OPEN_MAX:
            log.warning("reconciliation.too_much_open", network=self._network.code)
            return None
        if self._has_late_effects:
            self._note_late()
        moved: defaultdict[str, int] = defaultdict(int)
        coins = self._coins
        for flow in [*books.flows, *(flow for spend in books.open for flow in self._flows_of(spend))]:
            if flow.currency in coins:
                moved[flow.currency] += rescale_down(flow.units, flow.decimals, coins[flow.currency].scale)
        return moved

    def _note_late(self) -> None:
        """Note spends that ended after the books' block: a part of what they did may have happened up to it."""
        books, code = self._books, self._network.code
        known = {spend.id for spend in books.open}
        for spend in reconciliation.ended_after(code, books.hot, books.cursor.height, limit=OPEN_MAX):
            if spend.id not in known:
                self._note_waiting(spend, spends.attempts_of(spend.id))
        for spend in reconciliation.on_their_way(code, books.hot, limit=OPEN_MAX):
            effects = [output.effect for output in spend.outputs]
            self._note_undelivered(spend, effects, spends.attempts_of(spend.id))

    def _flows_of(self, spend: SpendRow) -> list[Flow]:
        """Ask the chain for the flows of a spend whose row names no block; none while the spend waits."""
        attempts = spends.attempts_of(spend.id)
        fate = self._spender.fate(case_of(self._network, spend, attempts))
        fate = as_meant(self._network, spend, fate, attempts)
        is_later = fate.kind is FateKind.INCLUDED and fate.height > self._books.cursor.height
        if fate.kind is FateKind.WAITING or (is_later and self._has_late_effects):
            self._note_waiting(spend, attempts)
        if fate.kind is FateKind.WAITING or fate.height > self._books.cursor.height:
            self._waiting_ids.append(spend.id)
        if fate.kind is not FateKind.INCLUDED or fate.height > self._books.cursor.height:
            return []
        self._note_undelivered(spend, [each.effect for each in fate.outputs], attempts)
        return [
            Flow(each.currency, self._decimals(spend, each.currency), each.units)
            for each in fate.movements
            if each.address == self._books.hot and each.currency in self._coins
        ]

    def _decimals(self, spend: SpendRow, currency: str) -> int:
        return spend.decimals if currency == spend.currency else self._coins[currency].decimals

    def _note_waiting(self, spend: SpendRow, attempts: Sequence[AttemptRow]) -> None:
        """Note what a waiting spend may have moved already.

        The node that reports balances may be ahead of the nodes that report spends.
        """
        coins = self._coins
        coin, gas = coins.get(spend.currency), coins[self._network.gas_currency]
        units = 0 if coin is None else rescale_down(spend.token_units, spend.decimals, coin.scale)
        if spend.sender == self._books.hot:
            self._may_have_left[spend.currency] += units
        else:
            self._may_have_come[spend.currency] += units
        if spend.fee_payer == self._books.hot:
            fee_units = max((each.ceiling_units for each in attempts), default=0)
            gain_units = max((each.gain_units for each in attempts), default=0)
            self._may_have_left[gas.currency] += gas.to_ledger(fee_units)
            self._may_have_come[gas.currency] += gas.to_ledger(gain_units)

    def _note_undelivered(
        self, spend: SpendRow, effects: Iterable[Effect | None], attempts: Sequence[AttemptRow]
    ) -> None:
        """Note the outputs of an included spend that may have reached the hot wallet, or come back to it, unseen.

        Coin that went along with them may have come back too.
        """
        coins, hot = self._coins, self._books.hot
        coin, gas = coins.get(spend.currency), coins[self._network.gas_currency]
        pairs = zip(spend.outputs, effects, strict=True)
        units = sum(output.token_units for output, effect in pairs if effect is None)
        if units and coin is not None:
            self._may_have_come[spend.currency] += rescale_down(units, spend.decimals, coin.scale)
        if units and hot in {spend.fee_payer, spend.sender}:
            most = max((each.ceiling_units for each in attempts), default=0)
            self._may_have_come[gas.currency] += gas.to_ledger(most)

    def _hot(self, coin: Coin, chain_units: int, moved_units: int) -> Finding | None:
        """Compare a coin of the hot wallet; None while waiting spends may explain the difference."""
        books = self._books
        expected = books.topup_units.get(coin.currency, 0) + moved_units
        expected -= books.written_off_units.get(coin.currency, 0)
        # A transfer that only one provider reports may have come or not.
        may_have_come = self._may_have_come[coin.currency] + books.doubted_units.get(coin.currency, 0)
        may_be = range(-self._may_have_left[coin.currency], may_have_come + 1)
        if chain_units != expected and chain_units - expected in may_be:
            return None
        return self._finding(
            coin, "hot", books.hot, chain_units=chain_units, expected=expected, is_sound=chain_units == expected
        )

    # Elsewhere ---------------------------------------------------------------------------------------------

    def _deposit(self, coin: Coin, address: str, chain_units: int, findings: dict[str, Finding]) -> None:
        """Compare one address and keep the finding of its coin; the first short address is the reported one."""
        kept = findings.get(coin.currency)
        expected = None if kept is not None and kept.detail else self._expected(coin, address)
        if expected is not None:
            findings[coin.currency] = self._finding(
                coin, "deposits", address, chain_units=chain_units, expected=expected, is_sound=chain_units >= expected
            )

    def _expected(self, coin: Coin, address: str) -> int | None:
        """Return the least that an address should hold; None if it was swept or own spends make it uncertain."""
        code, height = self._network.code, self._books.cursor.height
        unswept = sweeps.unswept_at(code, coin.currency, address, height=height)
        if not unswept:
            return None
        if not coin.is_gas:
            return unswept[0].units
        if addresses.is_in_motion(code, [address]):
            return None
        if self._has_late_effects and addresses.moves_after(code, address, height):
            return None
        # Gas for its tokens is paid from the same coin.
        come = probes.deposited_units(code, address, coin.currency, height=height, only_confirmed=True)
        return come + coin.to_ledger(addresses.moved_native_units(code, address, coin.currency, height=height))

    def _cold(self, coin: Coin, cold: str, chain_units: int) -> Finding:
        sent = sum(
            rescale_down(flow.units, flow.decimals, coin.scale)
            for flow in self._books.cooled
            if flow.currency == coin.currency
        )
        expected = max(0, sent - self._books.returned_units.get(coin.currency, 0))
        return self._finding(
            coin, "cold", cold, chain_units=chain_units, expected=expected, is_sound=chain_units >= expected
        )

    def _finding(
        self, coin: Coin, place: Place, address: str, *, chain_units: int, expected: int, is_sound: bool
    ) -> Finding:
        height, name = self._books.cursor.height, {"hot": "hot wallet", "deposits": "deposit address"}
        detail = (
            f"{coin.currency} on {self._network.code}: the {name.get(place, 'cold address')} {address} should hold"
            f" {_shown(expected, coin.scale)} after block {height} and holds {_shown(chain_units, coin.scale)}"
        )
        return Finding(
            currency=coin.currency,
            place=place,
            height=height,
            chain_units=chain_units,
            expected_units=expected,
            detail="" if is_sound else detail,
            address="" if is_sound else address,
            waiting_ids=self._waiting_ids if place == "hot" else [],
        )


def _shown(units: int, scale: int) -> str:
    return f"-{format_coin(-units, scale)}" if units < 0 else format_coin(units, scale)

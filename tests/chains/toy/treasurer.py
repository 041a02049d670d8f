"""Brings home what lies at toy addresses, as chains.family.Treasurer: the coin less its fee, a token after its fee.

Where money lies in coins, it joins them, as chains.family.CoinTreasurer.
"""

from __future__ import annotations

from collections.abc import Sequence

from chains.spending import (
    Coin,
    Coins,
    Draft,
    Fund,
    Intent,
    KeyRef,
    Lying,
    Offer,
    Output,
    Purse,
    Scanned,
    Step,
    Sweep,
    Wait,
)
from tests.chains.toy.chain import NATIVE
from tests.chains.toy.spender import ToySpender

# Coins that one transaction joins, and the most that is paid for it.
JOINED_MAX = 40
CHEAP_FEE = 1_000


class ToyTreasurer:
    def __init__(self, spender: ToySpender) -> None:
        self._spender = spender

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        if self._spender.cosigns:
            return self._cosigned(lying, hot, cap_units)
        name = NATIVE if lying.pair is None else lying.pair.contract or NATIVE
        fee = self._spender._fee(cap_units)
        there = min(lying.units, self._spender.balance(lying.key.address, name))
        if there < lying.units:
            return Wait(reason="short")
        if name == NATIVE:
            return (
                self._sweep(lying, hot, there - fee, cap_units) if there > fee else Wait(reason="dear", cost_units=fee)
            )
        if self._spender.balance(lying.key.address, NATIVE) < fee:
            return self._funding(hot, lying.key.address, fee + self._spender.receiving)
        return self._sweep(lying, hot, there, cap_units)

    def _cosigned(self, lying: Lying, hot: KeyRef, cap_units: int) -> Step:
        """Move the whole balance; the hot wallet pays."""
        name = NATIVE if lying.pair is None else lying.pair.contract or NATIVE
        if not 0 < lying.units <= self._spender.balance(lying.key.address, name):
            return Wait(reason="short")
        if self._spender.balance(hot.address, NATIVE) < self._spender._fee(cap_units) + lying.hot_promised_units:
            return Wait(reason="dear")
        return self._sweep(lying, hot, lying.units, cap_units, payer=hot)

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        if wallet.ordinal is None or missing_units > offer.ceiling_units:
            return Wait(reason="short", cost_units=offer.ceiling_units)
        return self._funding(hot, wallet.address, missing_units)

    def _funding(self, hot: KeyRef, address: str, units: int) -> Fund:
        intent = Intent(wallet=hot, pair=None, outputs=(Output(recipient=address, units=units),))
        return Fund(intent=intent, cost_units=2 * units)

    def _sweep(self, lying: Lying, hot: KeyRef, units: int, cap_units: int, *, payer: KeyRef | None = None) -> Sweep:
        outputs = (Output(recipient=hot.address, units=units),)
        intent = Intent(wallet=lying.key, pair=lying.pair, outputs=outputs, payer=payer)
        draft: Draft = self._spender.draft(intent, Purse(scanned=lying.scanned), cap_units=cap_units)
        return Sweep(draft=draft)


class ToyCoinTreasurer:
    def __init__(self, spender: ToySpender) -> None:
        self._spender = spender

    def join(
        self, coins: Sequence[Coin], hot: KeyRef, *, cap_units: int, scanned: Scanned | None = None
    ) -> Sweep | Wait:
        del scanned
        fee, taken = self._spender._fee(cap_units), coins[:JOINED_MAX]
        left = sum(coin.units for coin in taken) - fee
        if fee > CHEAP_FEE or left <= 0:
            return Wait(reason="dear", cost_units=fee)
        intent = Intent(wallet=hot, pair=None, outputs=(Output(recipient=hot.address, units=left),))
        offer = Offer(ceiling_units=fee, terms={"fee_units": fee, "change_units": 0})
        return Sweep(draft=Draft(intent=intent, claim=Coins(coins=tuple(taken)), offer=offer))

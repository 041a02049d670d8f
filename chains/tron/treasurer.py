"""Brings home what lies at deposit addresses of TRON. Built by chains.tron.family for the signer.

A token's transfer is paid with TRX at its address: that first, as much as the transfer may take, which also activates
the address, then the token. TRX itself leaves less its fee.
"""

from statistics import median_low

from chains.one_transfer import moving
from chains.spending import Draft, Fund, KeyRef, Lying, Offer, Step, Sweep, Wait
from chains.tron import accounts
from chains.tron.nodes import TronProviders
from chains.tron.spends import drafts, fees
from chains.tron.spends.trial import Verdict
from core.catalogue.catalogue import Pair


class TronTreasurer:
    """One TRON network, as chains.family.Treasurer. Units of the gas coin are sun."""

    def __init__(self, providers: TronProviders) -> None:
        self._providers = providers

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return what to do about what lies at an address; see chains.family."""
        if lying.pair is None:
            return self._coin_step(lying, hot, cap_units)
        return self._token_step(lying, lying.pair, hot, cap_units)

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return a wait: offers are never raised here, so no wallet lacks coin for a higher one."""
        del wallet, hot, missing_units
        return Wait(reason="short", cost_units=offer.ceiling_units)

    def _token_step(self, lying: Lying, pair: Pair, hot: KeyRef, cap_units: int) -> Step:
        intent = moving(hot, lying.key, pair, lying.units)
        if not self._has(lying, pair):
            return Wait(reason="short")
        verdict = drafts.verdict(self._providers, intent)
        made = drafts.make(intent, verdict, cap_units=cap_units, scanned=lying.scanned)
        missing = made.offer.ceiling_units - drafts.spared_units(made, verdict) - verdict.sun
        if missing <= 0:
            return Sweep(draft=made)
        # The step's cost is what is sent, and what sending it takes where the address was never activated.
        own_units = fees.COIN_BYTES * verdict.prices.byte + verdict.prices.activation
        return Fund(intent=moving(lying.key, hot, None, missing), cost_units=missing + own_units)

    def _coin_step(self, lying: Lying, hot: KeyRef, cap_units: int) -> Step:
        """Return the sweep of what there is by every account, less its fee, which is found out by moving one unit."""
        verdict = drafts.verdict(self._providers, moving(hot, lying.key, None, 1))
        movable_units = min(lying.units, verdict.sun)
        # As many bytes as the whole takes, not one unit.
        fee = self._coin_draft(lying, hot, max(movable_units, 1), verdict, cap_units).offer.ceiling_units
        units = movable_units - fee
        if units <= 0 or (lying.is_rest and units < fee):
            return Wait(reason="dear", cost_units=fee)
        return Sweep(draft=self._coin_draft(lying, hot, units, verdict, cap_units))

    def _coin_draft(self, lying: Lying, hot: KeyRef, units: int, verdict: Verdict, cap_units: int) -> Draft:
        return drafts.make(moving(hot, lying.key, None, units), verdict, cap_units=cap_units, scanned=lying.scanned)

    def _has(self, lying: Lying, pair: Pair) -> bool:
        """Return whether nodes show at the newest block what rows explain."""
        balances = self._providers.answers(lambda node: accounts.balance(node, lying.key.address, pair))
        return 0 < lying.units <= median_low(balances)

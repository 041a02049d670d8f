"""Sweeps the deposit addresses of TON. Built by chains.ton.family for the signer.

An address pays for its own requests: first coin from the hot wallet, then the address's own first request, which makes
its contract. Jettons leave as a whole, and the rest of the coin that goes along comes home with them. Of coin a named
amount leaves; the rest of its fees stays and pays the rent.
"""

from collections.abc import Mapping

from chains.net.providers import Providers
from chains.one_transfer import moving
from chains.spending import Draft, Fund, KeyRef, Lying, Offer, Step, Sweep, Wait
from chains.ton.jettons import JETTONS, Jetton
from chains.ton.nodes import Toncenter
from chains.ton.spends import drafts, fees
from chains.ton.spends.trial import Verdict
from core.catalogue.catalogue import Network, Pair


class TonTreasurer:
    """One TON network, as chains.family.Treasurer."""

    def __init__(
        self, network: Network, providers: Providers[Toncenter], jettons: Mapping[str, Jetton] = JETTONS
    ) -> None:
        """Take the same as the spender."""
        self._providers, self._setting = providers, drafts.setting(network, jettons)

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return the next step of a sweep; see chains.family."""
        if lying.units <= 0:
            return Wait(reason="short")
        if lying.pair is None:
            return self._coin_step(lying, hot, cap_units)
        return self._jetton_step(lying, lying.pair, hot, cap_units)

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return a wait: offers are never raised here, so no wallet lacks coin for a higher one."""
        del wallet, hot, missing_units
        return Wait(reason="short", cost_units=offer.ceiling_units)

    def _jetton_step(self, lying: Lying, pair: Pair, hot: KeyRef, cap_units: int) -> Step:
        # Nothing is moved, so that a balance which the chain does not show yet is no shortage.
        agreed = drafts.verdict(self._providers, moving(hot, lying.key, pair, 0), self._setting.jettons)
        if agreed.token_units < lying.units:
            return Wait(reason="short")
        draft = self._drafted(lying, hot, lying.units, agreed, cap_units)
        missing = draft.offer.ceiling_units - agreed.units
        if missing <= 0:
            return Sweep(draft=draft)
        # Receiving takes its part, if the contract is there already, and rent goes on until the sweep.
        missing += fees.of_receipt(agreed.prices) + fees.of_waiting(agreed.prices)
        return Fund(
            intent=moving(lying.key, hot, None, missing), cost_units=fees.sweep_units(agreed.prices, lying.pair)
        )

    def _coin_step(self, lying: Lying, hot: KeyRef, cap_units: int) -> Step:
        """Return the sweep of what there is by every account, less its fee, which is found out by moving one unit."""
        agreed = drafts.verdict(self._providers, moving(hot, lying.key, None, 1), self._setting.jettons)
        there = min(lying.units, agreed.units)
        fee = self._drafted(lying, hot, max(there, 1), agreed, cap_units).offer.ceiling_units
        units = there - fee
        if units <= 0 or (lying.is_rest and units < fee):
            return Wait(reason="dear", cost_units=fee)
        return Sweep(draft=self._drafted(lying, hot, units, agreed, cap_units))

    def _drafted(self, lying: Lying, hot: KeyRef, units: int, agreed: Verdict, cap_units: int) -> Draft:
        intent = moving(hot, lying.key, lying.pair, units)
        return drafts.make(intent, agreed, self._setting, cap_units=cap_units, scanned=lying.scanned)

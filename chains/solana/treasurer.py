"""Sweeps the deposit addresses of Solana. Built by chains.solana.family for the signer.

The hot wallet signs too and pays, so that no address needs SOL of its own. A token leaves as a whole, and its account
is closed, whose rent goes to the hot wallet. SOL leaves to the last lamport, since an account holds nothing or its
rent. If more has come than the scan knows, the rent stays: else a stranger's lamport a second would keep all of it.
"""

from dataclasses import replace
from statistics import median_low

from chains.net.json_rpc import JsonRpc, Rpc
from chains.net.providers import Providers
from chains.one_transfer import moving
from chains.solana import programs
from chains.solana.spends import drafts, fees, questions
from chains.spending import Draft, InsufficientCoinError, KeyRef, Lying, Offer, Step, Sweep, Wait
from core.catalogue.catalogue import Pair


class SolanaTreasurer:
    """One Solana cluster, as chains.family.Treasurer. Units of the gas coin are lamports."""

    def __init__(self, providers: Providers[JsonRpc]) -> None:
        self._providers = providers

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return the next step of a sweep; see chains.family."""
        there = median_low(self._providers.answers(lambda node: _units(node, lying.key.address, lying.pair)))
        if not 0 < lying.units <= there:
            return Wait(reason="short")
        kept_units = self._kept_units(there - lying.units) if lying.pair is None else 0
        if kept_units >= lying.units:
            return Wait(reason="dear")
        leaving = replace(lying, units=lying.units - kept_units)
        draft = self._drafted(leaving, hot, cap_units, closes=lying.pair is not None and lying.units == there)
        cost_units = draft.offer.ceiling_units
        if lying.pair is None and (lying.is_rest or kept_units) and leaving.units < cost_units:
            return Wait(reason="dear", cost_units=cost_units)
        return Sweep(draft=draft)

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return a wait: offers are never raised here, so no wallet lacks coin for a higher one."""
        del wallet, hot, missing_units
        return Wait(reason="short", cost_units=offer.ceiling_units)

    def _drafted(self, lying: Lying, hot: KeyRef, cap_units: int, *, closes: bool) -> Draft:
        intent = replace(moving(hot, lying.key, lying.pair, lying.units), payer=hot)
        agreed = drafts.verdict(self._providers, intent, closes=closes)
        made = drafts.make(
            intent, agreed, cap_units=cap_units, scanned=lying.scanned, closes=closes, expired=lying.expired
        )
        needed = lying.hot_promised_units + made.offer.ceiling_units + agreed.rents.plain
        if agreed.payer_units < needed:
            raise InsufficientCoinError(f"{hot.address} holds {agreed.payer_units} lamports and needs {needed}")
        return made

    def _kept_units(self, rest_units: int) -> int:
        """Return the SOL to leave besides a rest at an address: nothing, or the rent of its account."""
        if not rest_units:
            return 0
        rent = fees.agreed_rents(self._providers.answers(fees.rents)).plain
        return 0 if rest_units >= rent else rent


def _units(node: Rpc, address: str, pair: Pair | None) -> int:
    """Return the lamports or the units of a token that an address holds."""
    mint = None if pair is None else pair.contract
    [account] = questions.accounts(node, [address if mint is None else programs.associated(address, mint)])
    if account is None:
        return 0
    return account.lamports if mint is None else account.units(address, mint)

"""Plans sweeps of deposit addresses on Ethereum and its kin. Built by chains.evm.family for the signer.

A token needs coin at its address before a sweep: first gas, as much as its transaction will offer, then the token. A
sweep of the coin itself moves the balance less the fee. Sweeps can wait, so their offers leave little coin behind.
"""

from typing import Final

from chains.base import Place
from chains.evm import wire
from chains.evm.spends import balances, gas
from chains.evm.spends import trial as spend_trial
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.tx import spend_of
from chains.net.providers import RpcProviders
from chains.one_transfer import moving
from chains.spending import Counter, Draft, Fund, Intent, KeyRef, Lying, Offer, Step, Sweep, Wait
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import evm_parameters

# The margin on the gas of a sweep's trial. It was tried a moment ago between our own addresses; a payout's larger
# margin would leave coin at an address that is used once.
FRUGAL_MARGIN_PERCENT: Final = 5


class EvmTreasurer:
    """Plans sweeps on one EVM network, as chains.family.Treasurer. Units of the gas coin are wei."""

    def __init__(self, network: Network, providers: RpcProviders) -> None:
        self._network = network
        self._providers = providers
        self._parameters = evm_parameters(network)

    def step(self, lying: Lying, hot: KeyRef, *, cap_units: int) -> Step:
        """Return the next step of a sweep; see chains.family."""
        if lying.pair is None:
            return self._coin_step(lying, hot, cap_units)
        return self._token_step(lying, lying.pair, hot, cap_units)

    def relief(self, wallet: KeyRef, hot: KeyRef, *, offer: Offer, missing_units: int) -> Step:
        """Return gas for a deposit address that lacks part of a fee; never what it was to move, which may be gone."""
        if wallet.ordinal is None or missing_units > offer.ceiling_units:
            return Wait(reason="short", cost_units=offer.ceiling_units)
        return self._funding(wallet, hot, offer, missing_units)

    def frugal(self, intent: Intent, *, cap_units: int, held_units: int) -> Offer:
        """Return what to offer for what can wait, so that little is left of held_units; that may be too little for it.

        Tried as if gas cost nothing. Raises what quotes raise.
        """
        spend = spend_of(intent)
        # The gas of a plain transfer is known exactly.
        is_plain = spend.data == "0x" and self._parameters.coin_gas == spend_trial.INTRINSIC_GAS
        margin = 0 if is_plain else FRUGAL_MARGIN_PERCENT
        figure = spend_trial.gas_figure(intent, self._network)
        trial = spend_trial.judge(
            self._providers.answers(
                lambda node: spend_trial.attempt(
                    node, intent, spend, gas_figure=figure, bid=spend_trial.UNPRICED, margin_percent=margin
                )
            ),
            self._providers.count,
        )
        data_units = gas.data_fee(
            self._providers,
            self._network,
            calldata_bytes=len(wire.data(spend.data)),
            limit_wei=trial.gas * cap_units,
        )
        bid = gas.frugal_bid(
            self._providers, self._network, cap_wei=cap_units,
            affordable_wei=max(0, held_units - data_units) // trial.gas,
        )  # fmt: skip
        return gas_offer(gas_limit=trial.gas, price_units=bid.price_wei, tip_units=bid.tip_wei, data_units=data_units)

    def _token_step(self, lying: Lying, pair: Pair, hot: KeyRef, cap_units: int) -> Step:
        address = lying.key.address
        if balances.at_block(self._providers, Place(address=address, pair=pair), lying.block_hash) < lying.units:
            return Wait(reason="short")
        intent = moving(hot, lying.key, pair, lying.units)
        held_wei = balances.newest(self._providers, address)
        offer = self.frugal(intent, cap_units=cap_units, held_units=held_wei)
        if offer.ceiling_units > held_wei:
            return self._funding(lying.key, hot, offer, offer.ceiling_units - held_wei)
        return _sweep(intent, offer)

    def _coin_step(self, lying: Lying, hot: KeyRef, cap_units: int) -> Step:
        """Return the sweep of what there is by every account, less its fee, which is found out by moving one unit."""
        address = lying.key.address
        held_wei = min(
            lying.units,
            balances.at_block(self._providers, Place(address=address, pair=None), lying.block_hash),
            balances.newest(self._providers, address),
        )
        offer = self.frugal(moving(hot, lying.key, None, 1), cap_units=cap_units, held_units=held_wei)
        units = held_wei - offer.ceiling_units
        # A rest of gas has to be worth the fee.
        if units <= 0 or (lying.is_rest and units < offer.ceiling_units):
            return Wait(reason="dear", cost_units=offer.ceiling_units)
        return _sweep(moving(hot, lying.key, None, units), offer)

    def _funding(self, wallet: KeyRef, hot: KeyRef, offer: Offer, missing_units: int) -> Fund:
        """Return what an address is sent. Sending costs as well; on a rollup, posting that about as much as a sweep."""
        own_units = self._parameters.coin_gas * offer.terms["price_units"] + offer.terms["data_units"]
        return Fund(intent=moving(wallet, hot, None, missing_units), cost_units=missing_units + own_units)


def _sweep(intent: Intent, offer: Offer) -> Sweep:
    return Sweep(draft=Draft(intent=intent, claim=Counter(at_least=0), offer=offer))

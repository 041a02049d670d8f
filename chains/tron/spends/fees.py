"""Reckons what a TRON transaction costs, in sun: bandwidth by its bytes, energy by what a trial took, and activation.

Called by the reader for what merchants are charged, and by the drafts for what is offered.
"""

from collections.abc import Sequence
from statistics import median_high, median_low
from typing import Final

from chains.base import Cost
from chains.spending import FeeTooHighError, Offer
from chains.tron.accounts import Prices
from chains.tron.nodes import TronProviders
from core.catalogue.catalogue import Pair
from core.catalogue.families import TronParameters

# What a transfer of TRX and one of a token are reckoned with before there is one; both are somewhat shorter.
COIN_BYTES: Final = 300
TOKEN_BYTES: Final = 400
# Of the energy that a trial took, so much more is offered: who has none of the token takes more.
ENERGY_MARGIN_PERCENT: Final = 20


def cost(pair: Pair, prices: Prices, parameters: TronParameters, cap_units: int) -> Cost:
    """Return what a payout and a sweep of a coin cost, with nothing staked or free; of no more than the cap each."""
    coin_units = COIN_BYTES * prices.byte + prices.activation
    if pair.contract is None:
        return Cost(payout_units=min(coin_units, cap_units), sweep_units=min(COIN_BYTES * prices.byte, cap_units))
    bytes_units = TOKEN_BYTES * prices.byte
    payout_units = parameters.transfer_energy[pair.currency] * prices.energy + bytes_units
    # Home it comes to a wallet that holds the token; what it is paid with comes before.
    sweep_units = parameters.sweep_energy[pair.currency] * prices.energy + bytes_units
    return Cost(payout_units=min(payout_units, cap_units), sweep_units=min(sweep_units, cap_units) + coin_units)


def agreed_prices(providers: TronProviders, told: Sequence[Prices]) -> Prices:
    """Return each price as the middle of what nodes tell, of two the higher: too low a limit fails a transfer.

    The chain has one price, which honest nodes tell alike. What one of several tells alone is bounded by what two told
    last: it neither holds up payouts nor is charged for.
    """
    energy, byte, activation = (
        _agreed(providers, name, [getattr(each, name) for each in told]) for name in ("energy", "byte", "activation")
    )
    free_bytes = median_low(each.free_bytes for each in told)
    return Prices(energy=energy, byte=byte, activation=activation, free_bytes=free_bytes)


def _agreed(providers: TronProviders, name: str, told: Sequence[int]) -> int:
    price = median_high(told)
    return providers.bounded(name, price, voices=told.count(price))


def energy_limit(energy: int) -> int:
    """Return the energy that is offered for what took so much in a trial."""
    return energy * (100 + ENERGY_MARGIN_PERCENT) // 100


def offer(*, fee_limit: int, bandwidth_units: int, activation_units: int, timestamp_ms: int, cap_units: int) -> Offer:
    """Return an offer. fee_limit: what energy costs at most. Raises FeeTooHighError above the cap."""
    ceiling = fee_limit + bandwidth_units + activation_units
    if ceiling > cap_units:
        raise FeeTooHighError(f"a transfer takes up to {ceiling} sun, and the cap is {cap_units}")
    return Offer(ceiling_units=ceiling, terms={"fee_limit": fee_limit, "timestamp_ms": timestamp_ms})

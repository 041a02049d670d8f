"""Computes the cost of a TRON transaction, in sun: bandwidth by bytes, energy by a trial, and activation.

Called by the reader for merchants' charges, and by the drafts for offers.
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

# The sizes assumed for a transfer of TRX and of a token before they are built; both turn out somewhat shorter.
COIN_BYTES: Final = 300
TOKEN_BYTES: Final = 400
# The margin on the energy of a trial: a recipient that has none of the token takes more.
ENERGY_MARGIN_PERCENT: Final = 20


def cost(pair: Pair, prices: Prices, parameters: TronParameters, cap_units: int) -> Cost:
    """Return the cost of a payout and of a sweep, with nothing staked or free; each transaction at most the cap."""
    coin_units = COIN_BYTES * prices.byte + prices.activation
    if pair.contract is None:
        return Cost(payout_units=min(coin_units, cap_units), sweep_units=min(COIN_BYTES * prices.byte, cap_units))
    bytes_units = TOKEN_BYTES * prices.byte
    payout_units = parameters.transfer_energy[pair.currency] * prices.energy + bytes_units
    # A sweep's recipient, the hot wallet, holds the token. The transaction that funds the sweep comes on top.
    sweep_units = parameters.sweep_energy[pair.currency] * prices.energy + bytes_units
    return Cost(payout_units=min(payout_units, cap_units), sweep_units=min(sweep_units, cap_units) + coin_units)


def agreed_prices(providers: TronProviders, answers: Sequence[Prices]) -> Prices:
    """Return each price as the median of the nodes' prices, the higher of two: too low a limit fails a transfer.

    The chain has one price, which honest nodes report alike. If only one of several nodes reports the median, it is
    bounded by the price that two reported last, so that it neither holds up payouts nor is charged.
    """
    energy, byte, activation = (
        _agreed(providers, name, [getattr(each, name) for each in answers]) for name in ("energy", "byte", "activation")
    )
    free_bytes = median_low(each.free_bytes for each in answers)
    return Prices(energy=energy, byte=byte, activation=activation, free_bytes=free_bytes)


def _agreed(providers: TronProviders, name: str, prices: Sequence[int]) -> int:
    price = median_high(prices)
    return providers.bounded(name, price, voices=prices.count(price))


def energy_limit(energy: int) -> int:
    """Return the energy to offer for a call that took this much in a trial."""
    return energy * (100 + ENERGY_MARGIN_PERCENT) // 100


def offer(*, fee_limit: int, bandwidth_units: int, activation_units: int, timestamp_ms: int, cap_units: int) -> Offer:
    """Return an offer. fee_limit: the highest cost of energy. Raises FeeTooHighError above the cap."""
    ceiling = fee_limit + bandwidth_units + activation_units
    if ceiling > cap_units:
        raise FeeTooHighError(f"a transfer takes up to {ceiling} sun, and the cap is {cap_units}")
    return Offer(ceiling_units=ceiling, terms={"fee_limit": fee_limit, "timestamp_ms": timestamp_ms})

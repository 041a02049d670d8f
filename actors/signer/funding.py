"""Sends gas from the hot wallet to deposit addresses, so that payouts never wait for it. No actor.

Used by actors.treasury.sweep before a token is swept, and by actors.signer.follow_up if a deposit address cannot pay
for its signed spend.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.signer import sign
from chains.spending import Fund, KeyRef
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.money import rescale_down
from core.rates.worth import usd_units
from models.payouts import queue as payout_queue
from models.spends import reads as spend_reads
from models.treasury import sweeps

log = structlog.get_logger()

# Of the hot wallet's transactions that nodes keep, one in this many may be gas for sweeps: the others are payouts.
PAYOUTS_SHARE: Final = 4
# The number of times that one address is sent gas within an hour: if it needs more, the cause is not gas.
FUNDINGS_MAX: Final = 6


def is_room(network: Network, hot: KeyRef) -> bool:
    """Return whether gas may be sent now: not while payouts are due or slots_max() transfers wait."""
    if payout_queue.is_any_due(network):
        return False
    return spend_reads.waiting_of(network.code, hot.address, "gas") < slots_max(network)


def slots_max(network: Network) -> int:
    """Return the number of the hot wallet's gas transfers that may wait at once."""
    return max(1, traits_of(network).in_flight_max // PAYOUTS_SHARE)


def most_units(ctx: Context, network: Network) -> int:
    """Return the most gas that one address is sent at once, in base units; 0 without a rate."""
    rate, scale = ctx.market.read().rates.get(network.gas_currency), ctx.catalogue.scale(network.gas_currency)
    pair = ctx.catalogue.pair(network.gas_currency, network.code)
    most = usd_units(ctx.settings.gas_funding_max_usd, rate=rate, scale=scale) if rate else 0
    return rescale_down(most, scale, scale if pair is None else pair.decimals)


def fund(ctx: Context, network: Network, step: Fund) -> bool:
    """Send an address gas, unless payouts come first or it was sent enough lately; return whether it was sent.

    Never more at once than the operator allows, whatever prices and balances nodes report, and nothing without a rate.
    Raises the errors of spending.start, among them InsufficientCoinError if the hot wallet lacks the coin itself.
    """
    hot, [output] = step.intent.wallet, step.intent.outputs
    address, units = output.recipient, output.units
    if units > most_units(ctx, network):
        log.error("funding.refused", network=network.code, address=address, units=units, limit="GAS_FUNDING_MAX_USD")
        return False
    if sweeps.fundings_lately(network.code, address) >= FUNDINGS_MAX or not is_room(network, hot):
        return False
    return sign.start(ctx, network, purpose="gas", intent=step.intent) is not None

"""Sends gas from the hot wallet to deposit addresses, in such a way that payouts never wait for it. No actor.

Used by actors.treasury.sweep before a token is swept, and by actors.signer.watch where a deposit address has signed for
more than it can pay.
"""

from __future__ import annotations

from typing import Final

import structlog

from actors.context import Context
from actors.signer import spend as spending
from chains.spending import Fund, KeyRef
from core.catalogue.catalogue import Network
from core.catalogue.families import traits_of
from core.money import rescale_down
from core.rates.worth import usd_units
from models.payouts import queue as payout_queue
from models.spends import reads as spend_reads
from models.treasury import sweeps

log = structlog.get_logger()

# Of the transactions that nodes keep of the hot wallet, one in so many may be gas for sweeps: the others are payouts'.
PAYOUTS_SHARE: Final = 4
# Times that one address is given gas within an hour: what it lacks then is something else.
FUNDINGS_MAX: Final = 6


def is_room(network: Network, hot: KeyRef) -> bool:
    """Return whether gas may be sent now: not while payouts are due, and only so much at once."""
    if payout_queue.is_any_due(network):
        return False
    return spend_reads.waiting_of(network.code, hot.address, "gas") < slots_max(network)


def slots_max(network: Network) -> int:
    """Return how many transactions of the hot wallet may wait that are gas for sweeps."""
    return max(1, traits_of(network).in_flight_max // PAYOUTS_SHARE)


def most_units(ctx: Context, network: Network) -> int:
    """Return how much gas one address is sent at once at most, in base units; 0 without a rate."""
    rate, scale = ctx.market.read().rates.get(network.gas_currency), ctx.catalogue.scale(network.gas_currency)
    pair = ctx.catalogue.pair(network.gas_currency, network.code)
    most = usd_units(ctx.settings.gas_funding_max_usd, rate=rate, scale=scale) if rate else 0
    return rescale_down(most, scale, scale if pair is None else pair.decimals)


def fund(ctx: Context, network: Network, step: Fund) -> bool:
    """Send an address the gas coin, unless payouts come first or it was given enough lately; return whether it was.

    Never more at once than the operator allows, whatever nodes say of prices and balances, and nothing where nobody
    knows what it is worth. Raises what spending.start raises; InsufficientCoinError where the hot wallet lacks it
    itself.
    """
    hot, [output] = step.intent.wallet, step.intent.outputs
    address, units = output.recipient, output.units
    if units > most_units(ctx, network):
        log.error("funding.refused", network=network.code, address=address, units=units, limit="GAS_FUNDING_MAX_USD")
        return False
    if sweeps.fundings_lately(network.code, address) >= FUNDINGS_MAX or not is_room(network, hot):
        return False
    return spending.start(ctx, network, purpose="gas", intent=step.intent) is not None

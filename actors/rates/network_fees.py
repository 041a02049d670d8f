"""Records the cost of a payout and a sweep on each network, in the coin that moves. Notified by the scheduler."""

from __future__ import annotations

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from chains.base import Cost
from chains.family import Reader
from chains.registry import fee_cap_units
from core.catalogue.catalogue import Catalogue, Network
from core.errors import InvoiceQuoteFailed
from core.rates.pricing import Rates, fee_in_coin
from models.db.base import transaction
from models.rates import rates

log = structlog.get_logger()


@network_tick("fees")
def refresh_network_fees(ctx: Context, network: Network, chain: Reader) -> None:
    """Store the cost of moving each coin of a network, in the coin itself; leave out coins without a rate."""
    costs = chain.costs(cap_units=fee_cap_units(network, ctx.settings))
    # A moment ago there may have been no rates; see actors.rates.refresh.
    ctx.market.forget()
    market = ctx.market.read().rates
    quotes, unpriced = {}, []
    for currency, cost in costs.items():
        # Each coin by itself: one that has lost its rate keeps no other from leaving.
        try:
            quotes[currency] = _in_coin(ctx.catalogue, market, network, currency, cost)
        except InvoiceQuoteFailed:
            unpriced.append(currency)
    if unpriced:
        log.warning("network_fee.not_quoted", network=network.code, currencies=sorted(unpriced))
    with transaction():
        for currency, (units, sweep_units) in quotes.items():
            rates.store_network_fee(
                currency, network.code, units, gas_units=costs[currency].payout_units, sweep_units=sweep_units
            )


def _in_coin(catalogue: Catalogue, market: Rates, network: Network, currency: str, cost: Cost) -> tuple[int, int]:
    """Return the cost of a payout and of a sweep of a coin, in the coin itself."""
    payout_units, sweep_units = (
        fee_in_coin(catalogue, market, gas_units=units, gas_currency=network.gas_currency, currency=currency)
        for units in (cost.payout_units, cost.sweep_units)
    )
    return payout_units, sweep_units

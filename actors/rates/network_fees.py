"""Keeps what a payout costs on each network, in the coin that is paid out. Rung by the scheduler."""

from __future__ import annotations

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from chains.family import Reader
from chains.registry import gas_cap_units
from core.catalogue.catalogue import Network
from core.errors import InvoiceQuoteFailed
from core.rates.pricing import fee_in_coin
from models.db.base import transaction
from models.rates import rates

log = structlog.get_logger()


@network_tick("fees")
def refresh_network_fees(ctx: Context, network: Network, chain: Reader) -> None:
    """Ask the chain for its price of a transfer and write a quote for every coin of the network."""
    cap_units, catalogue, gas = gas_cap_units(network, ctx.settings), ctx.catalogue, network.gas_currency
    costs = {pair.currency: chain.transfer_fee(pair, cap_units=cap_units) for pair in catalogue.pairs_on(network.code)}
    # A moment ago there may have been no rates; see actors.rates.refresh.
    ctx.market.forget()
    market = ctx.market.read().rates
    try:
        quotes = {
            currency: fee_in_coin(catalogue, market, gas_units=cost, gas_currency=gas, currency=currency)
            for currency, cost in costs.items()
        }
    except InvoiceQuoteFailed as error:
        log.warning("network_fee.not_quoted", network=network.code, error=repr(error))
        return
    with transaction():
        for currency, units in quotes.items():
            rates.store_network_fee(currency, network.code, units, gas_units=costs[currency])

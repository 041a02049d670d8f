"""Keeps what a payout costs on each network, in the coin that is paid out. Rung by the scheduler."""

from __future__ import annotations

import structlog

from actors.context import context
from actors.queue.broker import doorbell, single_flight
from chains.base import ProviderError
from chains.registry import adapter, gas_cap_units
from core.errors import InvoiceQuoteFailed
from core.rates.pricing import fee_in_coin
from models.db.base import transaction
from models.rates import rates

log = structlog.get_logger()


@doorbell(queue="chain", arguments="networks")
def refresh_network_fees(network: str) -> None:
    """Ask the chain for its price of a transfer and write a quote for every coin of the network."""
    ctx = context()
    known = ctx.catalogue.networks[network]
    with single_flight(f"fees:{network}") as mine:
        if not mine:
            return
        chain = adapter(known, ctx.settings)
        try:
            cap_units = gas_cap_units(known, ctx.settings)
            costs = [(pair, chain.transfer_fee(pair, cap_units=cap_units)) for pair in ctx.catalogue.pairs_on(network)]
            # A moment ago there may have been no rates; see actors.rates.refresh.
            ctx.market.forget()
            market = ctx.market.read()
            quotes = [
                (
                    pair.currency,
                    cost,
                    fee_in_coin(
                        ctx.catalogue,
                        market.rates,
                        gas_units=cost,
                        gas_currency=known.gas_currency,
                        currency=pair.currency,
                    ),
                )
                for pair, cost in costs
            ]
        except (ProviderError, InvoiceQuoteFailed) as error:
            log.warning(
                "network_fee.not_quoted",
                network=network,
                error=repr(error),
            )
            return
    with transaction():
        for currency, cost, units in quotes:
            rates.store_network_fee(currency, network, units, gas_units=cost)

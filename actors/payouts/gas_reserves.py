"""Calculates the gas reserve, so that no conversion sells the coin that pays for transactions. No actor.

Called by actors.payouts.orders.
"""

from __future__ import annotations

from actors.context import Context
from chains.registry import fee_cap_units
from core.catalogue.catalogue import Network


def reserve_units(ctx: Context, currency: str) -> int:
    """Return the reserve of a coin for gas on all served networks together, in ledger units.

    For each network: GAS_RESERVE_TRANSFERS transfers of its dearest coin, at the highest fee that the signer offers.
    """
    return sum(
        _of_network(ctx, network)
        for code, network in ctx.catalogue.networks.items()
        if code in ctx.available and network.gas_currency == currency
    )


def _of_network(ctx: Context, network: Network) -> int:
    measure = network.family_parameters.payout_measure_max
    units = ctx.settings.gas_reserve_transfers * measure * fee_cap_units(network, ctx.settings)
    pair = ctx.catalogue.pair(network.gas_currency, network.code)
    return units if pair is None else pair.to_ledger(units, ctx.catalogue.scale(network.gas_currency))

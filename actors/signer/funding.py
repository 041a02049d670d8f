"""Sends gas from the hot wallet to deposit addresses, so that payouts never wait for it. No actor.

Used by actors.treasury.sweep before a token is swept, and by actors.signer.follow_up if a deposit address cannot pay
for its signed spend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog

from actors.context import Context
from actors.signer import sign
from chains.spending import Fund, InsufficientCoinError, KeyRef, SpendRefusedError
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


def fund(ctx: Context, network: Network, *steps: Fund) -> int:
    """Send addresses gas, unless payouts come first or they were sent enough lately; return how many were sent some.

    One spend funds as many as the family allows. Never more at once for one than the operator allows, whatever prices
    and balances nodes report, and nothing without a rate. Raises the errors of sign.start, among them
    InsufficientCoinError if the hot wallet lacks the coin itself, unless others were funded.
    """
    most, outputs_max = most_units(ctx, network), traits_of(network).outputs_max
    fair = [step for step in steps if _is_fair(network, step, most)]
    return _start_each(ctx, network, [fair[at : at + outputs_max] for at in range(0, len(fair), outputs_max)])


def _is_fair(network: Network, step: Fund, most: int) -> bool:
    """Return whether an address may be sent as much gas as a step says."""
    [output] = step.intent.outputs
    if output.units > most:
        log.error(
            "funding.refused", network=network.code, address=output.recipient, units=output.units,
            limit="GAS_FUNDING_MAX_USD",
        )  # fmt: skip
        return False
    return sweeps.fundings_lately(network.code, output.recipient) < FUNDINGS_MAX


def _start(ctx: Context, network: Network, steps: Sequence[Fund]) -> int:
    """Fund addresses with one spend; if that fails for one of them, or for their sum, fund each half alone."""
    if not is_room(network, steps[0].intent.wallet):
        return 0
    outputs = tuple(output for step in steps for output in step.intent.outputs)
    try:
        started = sign.start(ctx, network, purpose="gas", intent=replace(steps[0].intent, outputs=outputs))
    except sign.WalletBusyError:
        # Another spend came first.
        return 0
    except (InsufficientCoinError, SpendRefusedError) as error:
        if len(steps) == 1:
            raise
        log.info("funding.split", network=network.code, addresses=len(steps), reason=str(error))
        half = len(steps) // 2
        return _start_each(ctx, network, [steps[:half], steps[half:]])
    return 0 if started is None else len(steps)


def _start_each(ctx: Context, network: Network, parts: Sequence[Sequence[Fund]]) -> int:
    """Fund each part with a spend of its own. Raises the last part's error only if none was funded."""
    errors, funded = list[Exception](), 0
    for part in parts:
        try:
            funded += _start(ctx, network, part)
        except (InsufficientCoinError, SpendRefusedError) as error:
            errors.append(error)
    if errors and not funded:
        raise errors[-1]
    return funded

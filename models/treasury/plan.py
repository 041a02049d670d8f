"""Plans the treasury's sweeps: each coin at each deposit address, with a verdict and its reason. Reads only rows.

Called by actors.treasury.sweep, which acts on it, and by `sluice treasury plan`, which shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.errors import InvoiceQuoteFailed
from core.rates.pricing import Market, fee_in_coin, usd_cents
from core.rates.worth import SweepPolicy, Verdict, is_dear, judge_sweep
from core.settings.settings import Settings
from models.treasury import sweeps
from models.treasury.sweeps import Unswept


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A coin at an address with what is to be done about it. Amounts are the ledger's; None if there is no quote."""

    unswept: Unswept
    cost_units: int | None
    usd_cents: int | None
    verdict: Verdict


def policy_of(settings: Settings) -> SweepPolicy:
    """Return the operator's word on when a sweep pays."""
    return SweepPolicy(min_usd=settings.sweep_min_usd, fee_max_percent=settings.sweep_fee_max_percent)


def judged(
    catalogue: Catalogue, market: Market, policy: SweepPolicy, network: Network, unswept: Iterable[Unswept]
) -> list[Planned]:
    """Judge what lies at deposit addresses by today's fees and rates; first what payouts wait for, then tokens.

    An address takes one step at a time, and its own coin pays for its tokens.
    """
    wanted = sweeps.wanted_currencies(network.code)
    order = {
        pair.currency: (pair.currency not in wanted, pair.contract is None) for pair in catalogue.pairs_on(network.code)
    }
    return [
        _planned(catalogue, market, policy, network, each, is_wanted=each.currency in wanted)
        for each in sorted((each for each in unswept if each.currency in order), key=lambda each: order[each.currency])
    ]


def _planned(
    catalogue: Catalogue, market: Market, policy: SweepPolicy, network: Network, unswept: Unswept, *, is_wanted: bool
) -> Planned:
    cost = market.sweep_fees.get((unswept.currency, network.code))
    rate, scale = market.rates.get(unswept.currency), catalogue.scale(unswept.currency)
    verdict = judge_sweep(unswept.units, cost_units=cost, rate=rate, scale=scale, policy=policy, is_wanted=is_wanted)
    worth = None if rate is None else usd_cents(unswept.units, rate=rate, scale=scale)
    return Planned(unswept=unswept, cost_units=cost, usd_cents=worth, verdict=verdict)


def is_worth(
    catalogue: Catalogue, market: Market, policy: SweepPolicy, network: Network, unswept: Unswept, *, gas_units: int
) -> bool:
    """Return True if the coin at an address is worth a sweep that costs gas_units, in base units of the gas coin.

    The plan uses the last quotes; this check uses the fee about to be offered. Without rates the plan's verdict holds.
    """
    try:
        cost = fee_in_coin(
            catalogue, market.rates, gas_units=gas_units, gas_currency=network.gas_currency, currency=unswept.currency
        )
    except InvoiceQuoteFailed:
        return True
    return not is_dear(unswept.units, cost_units=cost, policy=policy)


def whole(
    catalogue: Catalogue, market: Market, policy: SweepPolicy, network: Network, *, limit: int
) -> Sequence[Planned]:
    """Judge all coins at a network's deposit addresses, up to a limit; none where nothing is swept."""
    if not traits_of(network).has_sweeps:
        return ()
    unswept = sweeps.unswept(network.code, family=network.family, limit=limit)
    return judged(catalogue, market, policy, network, unswept)

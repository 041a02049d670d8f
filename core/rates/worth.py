"""Decides if moving our own money is worth its cost. Pure; called by actors.treasury.sweep and cli.treasury.commands.

Amounts of a coin are in the ledger's units, whatever the network's token counts in; rates are as in core.rates.pricing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.money import mul_div_up
from core.rates.pricing import CENTS, PERCENT, RATE_DIGITS, usd_cents

Verdict = Literal["sweep", "too_small", "fee_too_high", "unpriced"]
"""sweep: worth it now; too_small: more has to come first; fee_too_high: wait for cheaper gas; unpriced:
no fresh quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPolicy:
    """The least worth of a swept address, and the share of it that the network may take."""

    min_usd: int
    fee_max_percent: int


def usd_units(usd: int, *, rate: int, scale: int) -> int:
    """Return the units of a coin that are worth an amount of dollars, rounded up. The rate must not be 0."""
    return mul_div_up(usd, 10 ** (scale + RATE_DIGITS), rate)


def is_dear(units: int, *, cost_units: int, policy: SweepPolicy) -> bool:
    """Return True if sweeping an amount would cost a larger share of it than the operator allows."""
    return cost_units * PERCENT > units * policy.fee_max_percent


def judge_sweep(
    units: int, *, cost_units: int | None, rate: int | None, scale: int, policy: SweepPolicy, is_wanted: bool = False
) -> Verdict:
    """Judge one address. is_wanted: payouts wait for this coin, so that small amounts are welcome too."""
    if cost_units is None or (rate is None and not is_wanted):
        return "unpriced"
    if rate is not None and not is_wanted and usd_cents(units, rate=rate, scale=scale) < policy.min_usd * CENTS:
        return "too_small"
    if is_dear(units, cost_units=cost_units, policy=policy):
        return "fee_too_high"
    return "sweep"


def excess_units(*, held_units: int, limit_usd: int, needed_units: int, rate: int | None, scale: int) -> int:
    """Return the hot wallet's surplus above its limit and above the need of open payouts; 0 without a rate.

    Coin at the cold address comes back only by hand, so none moves until the surplus is half the limit.
    """
    if not rate:
        return 0
    limit_units = usd_units(limit_usd, rate=rate, scale=scale)
    kept_units = limit_units + needed_units
    return held_units - kept_units if held_units > kept_units + limit_units // 2 else 0

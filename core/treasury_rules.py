"""When moving our own money is worth what it costs. Pure; called by actors.treasury and cli.treasury.

Amounts of a coin are in the ledger's units, whatever the network's token counts in; rates are as in core.pricing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.money import mul_div_down, mul_div_up
from core.pricing import RATE_DIGITS

Verdict = Literal["sweep", "small", "dear", "unknown"]
"""sweep: worth it now; small: leave it until more has come; dear: wait for cheaper gas; unknown: no fresh quote."""

CENTS: Final = 100
PERCENT: Final = 100
# The gas of a plain transfer of coin, with which a deposit address is funded before a token can leave it.
COIN_TRANSFER_GAS: Final = 21_000
# What a deposit address is given for a transfer, as a multiple of what one costs now: prices may double meanwhile.
FUNDING_FACTOR: Final = 3
# From a balance of coin, the fee is left behind with this much to spare, in percent of it.
COIN_MARGIN_PERCENT: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPolicy:
    """From which worth an address is swept, and how much of that the network may take."""

    min_usd: int
    fee_max_percent: int


def usd_cents(units: int, *, rate: int, scale: int) -> int:
    """Return what an amount is worth, rounded down."""
    return mul_div_down(units, rate * CENTS, 10 ** (scale + RATE_DIGITS))


def usd_units(usd: int, *, rate: int, scale: int) -> int:
    """Return how much of a coin so many dollars are, rounded up. The rate is more than nothing."""
    return mul_div_up(usd, 10 ** (scale + RATE_DIGITS), rate)


def sweep_cost(fee_units: int, *, transfer_gas: int, is_token: bool) -> int:
    """Return what a sweep costs altogether in its own coin: a token's needs coin to be sent there first.

    fee_units: what one transfer of the coin costs now.
    """
    if not is_token:
        return fee_units
    return fee_units + mul_div_up(fee_units, COIN_TRANSFER_GAS, transfer_gas)


def judge_sweep(
    units: int, *, cost_units: int | None, rate: int | None, scale: int, policy: SweepPolicy, is_wanted: bool = False
) -> Verdict:
    """Judge one address. is_wanted: payouts wait for this coin, so that small amounts are welcome too."""
    if cost_units is None or (rate is None and not is_wanted):
        return "unknown"
    if rate is not None and not is_wanted and usd_cents(units, rate=rate, scale=scale) < policy.min_usd * CENTS:
        return "small"
    if cost_units * PERCENT > units * policy.fee_max_percent:
        return "dear"
    return "sweep"


def excess_units(*, held_units: int, limit_usd: int, needed_units: int, rate: int | None, scale: int) -> int:
    """Return what the hot wallet holds above its limit and above what open payouts need; 0 without a rate.

    What goes to the cold address comes back by hand only, so half the limit more is waited for before anything does.
    """
    if not rate:
        return 0
    limit_units = usd_units(limit_usd, rate=rate, scale=scale)
    kept_units = limit_units + needed_units
    return held_units - kept_units if held_units > kept_units + limit_units // 2 else 0


def funding_units(*, fee_units: int, held_units: int) -> int:
    """Return how much coin to send to a deposit address so that it can pay for a transfer; 0 where it can already.

    All in the gas coin. fee_units: what the transfer costs now.
    """
    return FUNDING_FACTOR * fee_units - held_units if held_units < 2 * fee_units else 0


def coin_left_to_sweep(*, held_units: int, ceiling_units: int) -> int:
    """Return how much of its own coin a deposit address can send; what the transfer may cost at most stays behind."""
    return max(0, held_units - ceiling_units * (PERCENT + COIN_MARGIN_PERCENT) // PERCENT)

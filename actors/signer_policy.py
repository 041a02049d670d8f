"""What the signer lets leave: its own limits and its own count, whatever the rest of the gateway says.

Called by actors.broadcast. What goes from one wallet of ours to another is not limited; the price of gas is capped
where it is asked for (chains.registry.gas_cap_units).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.money import mul_div_up
from core.pricing import RATE_DIGITS
from models import signer_counters

if TYPE_CHECKING:
    from core.catalogue import Catalogue
    from core.pricing import Market
    from core.settings import Settings

DAY_H: Final = 24
CENTS: Final = 100


class NoRateError(Exception):
    """The coin has no fresh rate, so that nobody can tell what leaves."""


class LimitReachedError(Exception):
    """It would be more than the signer may let go."""


def usd_cents(catalogue: Catalogue, market: Market, currency: str, units: int) -> int:
    """Return what ledger units of a coin are worth in US cents, rounded up. Raises NoRateError."""
    rate = market.rates.get(currency)
    if not rate:
        raise NoRateError(f"no rate for {currency}")
    return mul_div_up(units * CENTS, rate, 10 ** (catalogue.scale(currency) + RATE_DIGITS))


def allow(settings: Settings, network: str, cents: int) -> None:
    """Count a payout that is signed in the caller's transaction. Raises LimitReachedError, having counted nothing.

    The hour is the clock's, the day its last 24 hours; all networks together.
    """
    if cents > settings.signer_payout_max_usd * CENTS:
        raise LimitReachedError("above SIGNER_PAYOUT_MAX_USD")
    signer_counters.lock()
    if signer_counters.spent(1) + cents > settings.signer_hourly_usd * CENTS:
        raise LimitReachedError("above SIGNER_HOURLY_USD")
    if signer_counters.spent(DAY_H) + cents > settings.signer_daily_usd * CENTS:
        raise LimitReachedError("above SIGNER_DAILY_USD")
    signer_counters.add(network, cents)

"""The outside world's quotes: rates and network fees, kept fresh by ticks and cached for a moment by each process."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from core.pricing import RATE_DIGITS, Market
from models.base import execute, rows

if TYPE_CHECKING:
    from decimal import Decimal

# Older quotes are refused: a stale rate sells at a loss.
STALE_AFTER_S: Final = 300
CACHE_S: Final = 1.0


class MarketBoard:
    """Fresh quotes for pricing. One per process; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._market = Market(rates={}, network_fees={})

    def read(self) -> Market:
        """Return quotes that are at most a moment old; those that went stale are absent."""
        with self._lock:
            if time.monotonic() - self._read_at > CACHE_S:
                self._market = load_market()
                self._read_at = time.monotonic()
            return self._market

    def forget(self) -> None:
        """Read anew at the next use, as after the clock was moved."""
        self._read_at = float("-inf")


def load_market() -> Market:
    """Read all quotes that are not stale."""
    rates = rows(
        "SELECT currency, trunc(usd * 10::numeric ^ %s) FROM rates"
        " WHERE quoted_at > app_now() - make_interval(secs => %s)",
        (RATE_DIGITS, STALE_AFTER_S),
    )
    fees = rows(
        "SELECT currency, network, units FROM network_fees WHERE quoted_at > app_now() - make_interval(secs => %s)",
        (STALE_AFTER_S,),
    )
    return Market(
        rates={currency: int(usd) for currency, usd in rates},
        network_fees={(currency, network): int(units) for currency, network, units in fees},
    )


def store_rate(currency: str, usd: Decimal, *, source: str) -> None:
    """Record a fresh rate: US dollars for one unit of currency."""
    execute(
        "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, %s, %s, app_now())"
        " ON CONFLICT (currency) DO UPDATE SET usd = EXCLUDED.usd, source = EXCLUDED.source, quoted_at = app_now()",
        (currency, usd, source),
    )


def store_network_fee(currency: str, network: str, units: int) -> None:
    """Record what one payout of a pair costs on chain now, in the ledger's units of its coin."""
    execute(
        "INSERT INTO network_fees (currency, network, units, quoted_at) VALUES (%s, %s, %s, app_now())"
        " ON CONFLICT (network, currency) DO UPDATE SET units = EXCLUDED.units, quoted_at = app_now()",
        (currency, network, units),
    )

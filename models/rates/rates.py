"""Keeps market rates and network fees, refreshed by ticks and cached for a moment by each process."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from core.catalogue.catalogue import Catalogue
from core.rates.consensus import Rate
from core.rates.pricing import RATE_DIGITS, Market
from core.rates.view import AGAINST, Course
from models.db.base import column, execute, rows, rows_as
from models.db.clock import FUTURE_MAX_S
from models.db.prefetch import ahead
from models.rates import book
from models.rates.rows import RateRow

# Older quotes are refused: a stale rate sells at a loss.
STALE_AFTER_S: Final = 300
# A conversion trades at the rate itself, without a margin for its age: only one agreed on within this time is used.
CONVERSION_AGE_MAX_S: Final = 60
CACHE_S: Final = 1.0

# A quote from the future was written before the clock was set back: its age is unknown.
_IS_FRESH: Final = (
    f"quoted_at > app_now() - make_interval(secs => {STALE_AFTER_S})"
    f" AND quoted_at <= app_now() + make_interval(secs => {FUTURE_MAX_S})"
)


class MarketBoard:
    """Fresh quotes for pricing. One per process; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # With the time when its reading began. One value, since threads replace it concurrently.
        self._known = float("-inf"), Market(rates={}, network_fees={})
        self._forgotten_at = float("-inf")

    def read(self) -> Market:
        """Return quotes read within CACHE_S, without stale ones."""
        ahead.note(self._load)
        with self._lock:
            began_at, _ = self._known
            if began_at <= self._forgotten_at or time.monotonic() - began_at > CACHE_S:
                self._load()
            return self._known[1]

    def forget(self) -> None:
        """Read again at the next use, for example after the clock was moved."""
        self._forgotten_at = time.monotonic()

    def _load(self) -> None:
        began_at = time.monotonic()
        self._known = began_at, load_market()


def load_market() -> Market:
    """Read all quotes that are not stale."""
    rates = _fresh_rates()
    fees = rows(f"SELECT currency, network, units, COALESCE(sweep_units, units) FROM network_fees WHERE {_IS_FRESH}")
    return Market(
        rates={currency: rate for currency, rate, *_ in rates},
        conversion_rates={currency: rate for currency, rate, _, is_agreed in rates if is_agreed},
        network_fees={(currency, network): units for currency, network, units, _ in fees},
        sweep_fees={(currency, network): units for currency, network, _, units in fees},
    )


def aging(currencies: Collection[str]) -> set[str]:
    """Return the currencies whose sources have not agreed on a rate within CONVERSION_AGE_MAX_S."""
    return set(
        column(
            "SELECT currency FROM rates WHERE currency = ANY(%s)"
            " AND agreed_at <= app_now() - make_interval(secs => %s)",
            (list(currencies), CONVERSION_AGE_MAX_S),
        )
    )


def quotes_against_usdt(currency_from: str | None = None) -> list[Course]:
    """Return the rate of each currency, or of one, in USDT.

    Currencies that are unknown or have a stale rate are left out; without a rate of USDT all are.
    """
    fresh = {currency: (rate, quoted_at) for currency, rate, quoted_at, _ in _fresh_rates()}
    if AGAINST not in fresh:
        return []
    usdt_rate, usdt_at = fresh[AGAINST]
    return [
        Course(currency=currency, rate=rate, usdt_rate=usdt_rate, updated_at=min(quoted_at, usdt_at))
        for currency, (rate, quoted_at) in fresh.items()
        # Compared here and not in SQL, which would refuse some texts that a caller can send.
        if currency_from in {None, currency}
    ]


def last_rates() -> dict[str, Decimal]:
    """Return the last rate of each currency, however old, to compare new ones with."""
    return dict(RateRow.select(RateRow.currency, RateRow.usd).all())


def _fresh_rates() -> list[tuple[str, int, datetime, bool]]:
    return rows(
        "SELECT currency, trunc(usd * 10::numeric ^ %s), quoted_at,"
        " agreed_at > app_now() - make_interval(secs => %s)"
        f" FROM rates WHERE {_IS_FRESH} ORDER BY currency",
        (RATE_DIGITS, CONVERSION_AGE_MAX_S),
    )


def store_rates(new: Mapping[str, Rate]) -> None:
    """Record rates in one statement and one order of rows, so that two writers cannot deadlock."""
    RateRow.write_all(
        [
            RateRow(
                currency=currency,
                usd=rate.usd,
                source=",".join(rate.sources),
                quoted_at=rate.as_of,
                agreed_at=rate.agreed_at,
            )
            for currency, rate in sorted(new.items())
        ],
        "ON CONFLICT (currency) DO UPDATE SET usd = EXCLUDED.usd, source = EXCLUDED.source,"
        " quoted_at = EXCLUDED.quoted_at, agreed_at = EXCLUDED.agreed_at",
    )


def note_disagreement(currencies: Collection[str]) -> None:
    """Exclude these currencies, which keep their last rate, from conversions until their sources agree again."""
    execute("UPDATE rates SET agreed_at = '-infinity' WHERE currency = ANY(%s)", (sorted(currencies),))


def keep_clock() -> None:
    """Lock the clock against moves until the transaction ends, so that quotes of now are still so when written."""
    execute("LOCK TABLE rates IN ROW EXCLUSIVE MODE")


def carry_over(seconds: int) -> None:
    """Move all quotes' times with the clock, in the transaction that moves it, so that none gets older.

    Writers of quotes wait for its end, or it waits for theirs.
    """
    execute("LOCK TABLE rates, network_fees, rate_sources IN SHARE ROW EXCLUSIVE MODE")
    for table, moment in (
        ("rates", "quoted_at"),
        ("rates", "agreed_at"),
        ("network_fees", "quoted_at"),
        ("rate_sources", "answered_at"),
    ):
        execute(f"UPDATE {table} SET {moment} = {moment} + make_interval(secs => %s)", (seconds,))
    book.carry_over(seconds)


def unpriced_networks(catalogue: Catalogue, networks: Collection[str]) -> list[str]:
    """Return the networks where a coin has a fresh rate and no fresh fee."""
    pairs = [(code, coin) for coin, code in catalogue.pairs if code in networks]
    return column(
        "SELECT DISTINCT p.network FROM unnest(%s::text[], %s::text[], %s::text[]) AS p (network, currency, gas)"
        f" WHERE NOT EXISTS (SELECT 1 FROM network_fees f WHERE f.network = p.network AND f.currency = p.currency"
        f"  AND {_IS_FRESH})"
        # The fee of the gas coin itself needs no rate.
        f" AND (p.currency = p.gas OR 2 = (SELECT count(*) FROM rates WHERE currency IN (p.currency, p.gas)"
        f"  AND {_IS_FRESH})) ORDER BY 1",
        (
            [code for code, _ in pairs],
            [coin for _, coin in pairs],
            [catalogue.networks[code].gas_currency for code, _ in pairs],
        ),
    )


class LastFee(NamedTuple):
    """The last network fee of a coin's payout, in ledger units, and whether an order's own quote is over."""

    units: int
    is_outlived: bool


def last_network_fee(currency: str, network: str, *, stale_since: datetime) -> LastFee | None:
    """Return the last quote of a payout's network fee, however old; None if there never was one.

    stale_since: when an order was made, whose own quote holds for STALE_AFTER_S. An order from the future was made
    before the clock was set back; its quote counts as over.
    """
    fees = rows_as(
        LastFee,
        "SELECT units, %s NOT BETWEEN app_now() - make_interval(secs => %s) AND app_now() + make_interval(secs => %s)"
        " AS is_outlived FROM network_fees WHERE (currency, network) = (%s, %s)",
        (stale_since, STALE_AFTER_S, FUTURE_MAX_S, currency, network),
    )
    return fees[0] if fees else None


def store_network_fee(
    currency: str, network: str, units: int, *, gas_units: int, sweep_units: int | None = None
) -> None:
    """Record the cost of one payout of a pair now, in the ledger's units of its coin and of the gas coin.

    sweep_units: the cost of a sweep, in the ledger's units of its coin; by default that of a payout.
    """
    execute(
        "INSERT INTO network_fees (currency, network, units, gas_units, sweep_units, quoted_at)"
        " VALUES (%s, %s, %s, %s, %s, app_now()) ON CONFLICT (network, currency) DO UPDATE SET"
        " units = EXCLUDED.units, gas_units = EXCLUDED.gas_units, sweep_units = EXCLUDED.sweep_units,"
        " quoted_at = app_now()",
        (currency, network, units, gas_units, sweep_units),
    )

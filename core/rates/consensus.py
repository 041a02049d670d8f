"""Makes one rate from several sources' quotes. Pure; called by actors.rates.refresh.

A source that errs or lies is outvoted: the rate is the median of the quotes that agree with the median of all, and only
if these are enough and more than half. Nothing is assumed: a stablecoin has its market price, and a currency on which
the sources disagree keeps its last rate until that is stale. Reasons: docs/decisions/rates.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

from core.catalogue.catalogue import Catalogue
from core.money import PPM
from core.rates.shapes import EXACT, bounded
from core.rates.sources import Quotes

DOLLAR: Final = "USD"
TETHER: Final = "USDT"
# A rate that leaps further than its kind does in a round is believed from this many sources only.
LEAP_SOURCES_MIN: Final = 2
RATE_STEP: Final = Decimal("1e-18")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits of agreement and of a leap, for a kind of currency."""

    sources_min: int
    # The largest distance from the median that still agrees with it.
    spread_ppm: int
    leap_ppm: int


# Markets trade coins within tenths of a per cent of each other; daily tables of fiat money are a day behind a market.
COIN_SPREAD_PPM: Final = 20_000
COIN_LEAP_PPM: Final = 250_000
FIAT_RULES: Final = Rules(sources_min=1, spread_ppm=50_000, leap_ppm=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A source's last quotes, and the time since which they hold."""

    source: str
    quoted_in: str
    as_of: datetime
    quotes: Quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One source's price of a currency, in US dollars."""

    source: str
    usd: Decimal
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """US dollars for one unit; as old as the oldest quote in it.

    agreed_at: the time since which as many sources as its kind needs have given this price.
    """

    usd: Decimal
    as_of: datetime
    agreed_at: datetime
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """The reason why a currency gets no new rate."""

    reason: str


@dataclass(slots=True, kw_only=True)
class Consensus:
    """New rates, the currencies that keep their last one, and the outvoted sources."""

    rates: dict[str, Rate] = field(default_factory=dict)
    held_back: dict[str, str] = field(default_factory=dict)
    outvoted: dict[str, list[str]] = field(default_factory=dict)


def agree(
    catalogue: Catalogue,
    readings: Sequence[Reading],
    *,
    previous: Mapping[str, Decimal],
    coin_sources_min: int,
    now: datetime,
) -> Consensus:
    """Return the rates of all currencies of the catalogue that the readings settle."""
    coin_rules = Rules(sources_min=coin_sources_min, spread_ppm=COIN_SPREAD_PPM, leap_ppm=COIN_LEAP_PPM)
    consensus = Consensus(rates={DOLLAR: Rate(usd=Decimal(1), as_of=now, agreed_at=now, sources=("definition",))})
    # Tether first: where a market quotes in it, its own price turns the quote into dollars.
    for currency in sorted({*catalogue.assets, *catalogue.fiats} - {DOLLAR}, key=lambda code: (code != TETHER, code)):
        rules = coin_rules if currency in catalogue.assets else FIAT_RULES
        quotes = list(_in_dollars(currency, readings, consensus.rates))
        _note(consensus, currency, quotes, settle(quotes, previous=previous.get(currency), rules=rules))
    return consensus


def settle(quotes: Sequence[Quote], *, previous: Decimal | None, rules: Rules) -> Rate | HeldBack:
    """Return the median of the quotes that agree, or the reason why there is no rate."""
    if not quotes:
        return HeldBack(reason="no source")
    middle = median([quote.usd for quote in quotes])
    close = [quote for quote in quotes if _is_within(quote.usd, middle, rules.spread_ppm)]
    if 2 * len(close) <= len(quotes):
        return HeldBack(reason="the sources disagree")
    usd = median([quote.usd for quote in close])
    leaps = previous is not None and not _is_within(usd, previous, rules.leap_ppm)
    if len(close) < max(rules.sources_min, LEAP_SOURCES_MIN if leaps else 0):
        return HeldBack(reason="too few sources for such a leap" if leaps else "too few sources")
    return Rate(
        usd=usd.quantize(RATE_STEP, context=EXACT),
        as_of=min(quote.as_of for quote in close),
        agreed_at=sorted((quote.as_of for quote in close), reverse=True)[max(rules.sources_min, 1) - 1],
        sources=tuple(sorted(quote.source for quote in close)),
    )


def median(prices: Iterable[Decimal]) -> Decimal:
    """Return the middle price, or the mean of the two in the middle."""
    ordered = sorted(prices)
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return EXACT.divide(EXACT.add(below, above), Decimal(2))


def _is_within(price: Decimal, of: Decimal, ppm: int) -> bool:
    return EXACT.multiply(EXACT.abs(EXACT.subtract(price, of)), PPM) <= EXACT.multiply(of, ppm)


def _in_dollars(currency: str, readings: Iterable[Reading], rates: Mapping[str, Rate]) -> Iterable[Quote]:
    for reading in readings:
        price, unit = reading.quotes.get(currency), rates.get(reading.quoted_in)
        if price is None or unit is None:
            continue
        usd = bounded(EXACT.multiply(price, unit.usd))
        if usd is not None:
            yield Quote(source=reading.source, usd=usd, as_of=min(reading.as_of, unit.as_of))


def _note(consensus: Consensus, currency: str, quotes: Iterable[Quote], outcome: Rate | HeldBack) -> None:
    if isinstance(outcome, HeldBack):
        consensus.held_back[currency] = outcome.reason
        return
    consensus.rates[currency] = outcome
    for quote in quotes:
        if quote.source not in outcome.sources:
            consensus.outvoted.setdefault(quote.source, []).append(currency)

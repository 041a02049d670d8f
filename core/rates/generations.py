"""Derives the quotes of an open invoice from the rates, without writing any. Pure; called by models.invoices.quoting.

A generation runs for its invoice's quote_s. The next one begins where it ends, or where the payment that held it let
go, at the rates of that moment. Without rates the running generation is extended once; after that the invoice has no
price until the first moment that has rates again. Nothing begins at or after the invoice's expiry.

So the generation of any moment is known at any later time, for as long as the rates are kept.
Source: API reference, "Quotes"; docs/decisions/quotes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol

from core.rates.pricing import Quote

# How long a quote holds at a gateway whose operator set nothing.
QUOTE_S: Final = 15 * 60
# No generation begins at the expiry or later.
_LEAST: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A quote of an invoice with its time."""

    number: int
    quote: Quote
    valid_from: datetime
    rate_expires_at: datetime
    is_extended: bool = False
    # Since when there is no price; None while there is one.
    unpriced_at: datetime | None = None
    # When it began, was extended or lost its price: the last of these.
    changed_at: datetime


class Priced(NamedTuple):
    """A moment with the quote that its rates give."""

    at: datetime
    quote: Quote


class Prices(Protocol):
    """Prices one invoice by the rates that were in force at a moment."""

    def at(self, moment: datetime, /) -> Quote | None:
        """Return the quote of a moment; None without a rate."""

    def next_after(self, moment: datetime, /, *, until: datetime) -> Priced | None:
        """Return the first moment after another one, and at `until` at the latest, that has a quote."""


def follow(
    running: Generation,
    *,
    until: datetime,
    expires_at: datetime,
    quote_s: int,
    held_until: datetime | None,
    prices: Prices,
    is_held: Callable[[Quote], bool],
) -> list[Generation]:
    """Return the running generation, as it is by `until`, and those that began after it, up to that moment.

    quote_s: how long each quote holds. held_until: the last moment at which a payment held the running generation.
    is_held: whether what has come and is there still holds a quote.
    """
    generations, until = [running], min(until, expires_at - _LEAST)
    ends = partial(end, expires_at=expires_at, quote_s=quote_s)
    while not is_held(generations[-1].quote) and (at := _next_at(generations[-1], held_until)) <= until:
        after = _after(generations[-1], at, until=until, ends=ends, prices=prices)
        if after.number == generations[-1].number:
            generations[-1] = after
        else:
            generations[-1:] = replace(generations[-1], unpriced_at=None), after
        if after.unpriced_at is not None:
            break
    return generations


def _next_at(running: Generation, held_until: datetime | None) -> datetime:
    """Return when the rate of a generation has to be renewed."""
    return running.rate_expires_at if held_until is None else max(running.rate_expires_at, held_until)


def _after(
    running: Generation, at: datetime, *, until: datetime, ends: Callable[[datetime], datetime], prices: Prices
) -> Generation:
    """Return the next generation, or the running one: extended, or without a price. ends: until when a rate holds."""
    quote = prices.at(at)
    if quote is None and not running.is_extended:
        return replace(running, rate_expires_at=ends(at), is_extended=True, changed_at=at)
    priced = prices.next_after(at, until=until) if quote is None else Priced(at, quote)
    if priced is None:
        return running if running.unpriced_at else replace(running, unpriced_at=at, changed_at=at)
    return Generation(
        number=running.number + 1,
        quote=priced.quote,
        valid_from=priced.at,
        rate_expires_at=ends(priced.at),
        changed_at=priced.at,
    )


def end(at: datetime, *, expires_at: datetime, quote_s: int) -> datetime:
    """Return until when the rate of a moment holds."""
    return min(expires_at, at.replace(microsecond=0) + timedelta(seconds=quote_s))

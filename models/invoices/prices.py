"""Prices invoices by the rates of earlier moments, a page of them by one statement for all that have like coins.

Called by models.invoices.quoting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from core.catalogue.catalogue import Catalogue
from core.errors import DomainError
from core.rates import generations
from core.rates.generations import Priced
from core.rates.pricing import Market, Quote
from models.invoices import plan
from models.invoices.rows import InvoiceRow
from models.rates import book
from models.rates.book import Entry, Figures, Series


class Span(NamedTuple):
    """The time in which quotes of an invoice may begin."""

    invoice: InvoiceRow
    begin: datetime
    until: datetime


class PagePrices:
    """Prices some invoices, whose rates are read ahead for all moments at which their quotes may begin."""

    def __init__(self, catalogue: Catalogue, spans: Sequence[Span]) -> None:
        self._memo = _Memo(catalogue)
        ends = [min(invoice.expires_at, until) for invoice, _, until in spans]
        self._book = _Book(until=max(ends, default=None))
        wanted: dict[tuple[Series, ...], set[datetime]] = {}
        for (invoice, begin, _), end in zip(spans, ends, strict=True):
            wanted.setdefault(tuple(plan.series_of(invoice)), set()).update(
                _every_quote(begin, until=end, quote_s=invoice.each_quote_s)
            )
        for series, moments in wanted.items():
            self._book.read(series, moments)

    def of(self, invoice: InvoiceRow, *, now: datetime) -> generations.Prices:
        """Return the prices of one invoice."""
        return _Prices(invoice, self._book, self._memo, until=min(invoice.expires_at, now))


class _Memo:
    """Prices like invoices once: by the figures, the price and the terms."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[tuple[object, ...], Quote | None] = {}

    def quote(self, invoice: InvoiceRow, series: Sequence[Series], figures: Figures) -> Quote | None:
        """Return an invoice's quote by some figures; None where they give none."""
        key = (
            tuple(series), figures, invoice.price_currency, invoice.price_units, invoice.pay_currency, invoice.network,
            invoice.fee_fixed_usd_cents, invoice.discount_ppm, invoice.subtract_percent,
        )  # fmt: skip
        if key not in self._known:
            self._known[key] = self._priced(invoice, dict(zip(series, figures, strict=True)))
        return self._known[key]

    def _priced(self, invoice: InvoiceRow, figures: dict[Series, int]) -> Quote | None:
        market = Market(
            rates={coin: figure for (coin, network), figure in figures.items() if not network},
            network_fees={(coin, network): figure for (coin, network), figure in figures.items() if network},
        )
        try:
            return plan.quote_by(self._catalogue, market, invoice)
        except DomainError:
            return None


class _Gap(NamedTuple):
    """Some series lack a figure from one moment on: until that of `entry`, or without an entry until `end`."""

    begin: datetime
    end: datetime
    entry: Entry | None

    def covers(self, moment: datetime, until: datetime) -> bool:
        """Return whether it answers what comes first after a moment, and at `until` at the latest."""
        return self.begin <= moment and (until <= self.end if self.entry is None else moment < self.entry.at)


class _Book:
    """The book of rates, as far as it was read. until: how far ahead the next known moment is looked for."""

    def __init__(self, *, until: datetime | None) -> None:
        self._until = until
        self._figures: dict[tuple[Series, ...], dict[datetime, Figures | None]] = {}
        self._gaps: dict[tuple[Series, ...], list[_Gap]] = {}

    def read(self, series: tuple[Series, ...], moments: Iterable[datetime]) -> None:
        """Read the figures of some moments by one statement."""
        known = self._figures.setdefault(series, {})
        known.update((entry.at, entry.figures) for entry in book.at_moments(series, list(moments)))

    def at(self, series: tuple[Series, ...], moment: datetime, *, until: datetime, quote_s: int) -> Figures | None:
        """Return the figures of a moment. Those that follow it at a quote's distance are read with them."""
        if moment not in self._figures.get(series, {}):
            self.read(series, _every_quote(moment, until=until, quote_s=quote_s))
        return self._figures[series][moment]

    def next_after(self, series: tuple[Series, ...], moment: datetime, *, until: datetime) -> Entry | None:
        """Return the first entry after a moment, and at `until` at the latest, that has all figures."""
        gaps = self._gaps.setdefault(series, [])
        gap = next((each for each in gaps if each.covers(moment, until)), None)
        if gap is None:
            end = max(until, self._until or until)
            gap = _Gap(moment, end, book.next_after(series, moment, until=end))
            gaps.append(gap)
        return gap.entry if gap.entry and gap.entry.at <= until else None


def _every_quote(begin: datetime, *, until: datetime, quote_s: int) -> Iterator[datetime]:
    """Return a moment and those that follow it at a quote's distance."""
    yield begin
    at = begin.replace(microsecond=0)
    while (at := at + timedelta(seconds=quote_s)) <= until:
        yield at


class _Prices:
    """Prices one invoice by the book, as core.rates.generations.Prices."""

    def __init__(self, invoice: InvoiceRow, known: _Book, memo: _Memo, *, until: datetime) -> None:
        self._invoice, self._book, self._memo, self._until = invoice, known, memo, until
        self._series = tuple(plan.series_of(invoice))

    def at(self, moment: datetime, /) -> Quote | None:
        """Return the quote of a moment; None without a rate."""
        quote_s = self._invoice.each_quote_s
        return self._quote(self._book.at(self._series, moment, until=self._until, quote_s=quote_s))

    def next_after(self, moment: datetime, /, *, until: datetime) -> Priced | None:
        """Return the first moment after another one, and at `until` at the latest, that has a quote."""
        entry = self._book.next_after(self._series, moment, until=until)
        quote = None if entry is None else self._quote(entry.figures)
        return None if entry is None or quote is None else Priced(entry.at, quote)

    def _quote(self, figures: Figures | None) -> Quote | None:
        return None if figures is None else self._memo.quote(self._invoice, self._series, figures)

"""Quotes open invoices anew when somebody looks, and writes what their payments and their ends are judged by.

An open invoice costs nothing until then: its quotes follow from its row and from the rates that models.rates.book
keeps. They are written where a payment comes, holds them no more or is judged, and where the invoice ends.
docs/decisions/0088-quotes-without-clockwork.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.errors import DomainError
from core.rates import generations
from core.rates.generations import Generation, Priced
from core.rates.pricing import Market, Quote
from models.db.base import app_now, execute, transaction
from models.invoices import plan, rows
from models.invoices.rows import HOLDING_PART, InvoiceRow, QuoteRow
from models.rates import book
from models.rates.book import Entry, Figures, Series

# Of a sale in these, the quote is the one that it was decided by, or nothing can be paid any more.
_MOVING: Final = frozenset({"check"})


def seen(catalogue: Catalogue, shown: Sequence[InvoiceRow]) -> list[InvoiceRow]:
    """Return invoices with the quotes that are in force now; nothing is written."""
    if not any(_may_move(invoice) for invoice in shown):
        return list(shown)
    now, memo = app_now(), _Memo(catalogue)
    return [_at(invoice, now, memo) for invoice in shown]


def seen_one(catalogue: Catalogue, invoice: InvoiceRow) -> InvoiceRow:
    """Return an invoice with the quote that is in force now."""
    return seen(catalogue, [invoice])[0]


class Targets:
    """What invoices ask for at a moment: found once for each, in a step of a scan."""

    def __init__(self) -> None:
        self._known: dict[tuple[UUID, datetime | None], int | None] = {}

    def units(self, catalogue: Catalogue, invoice_id: UUID, at: datetime | None) -> int | None:
        """Return what is asked for by the quote of a moment, or by the one that payments hold; None before a choice.

        at: a block's time, which may be ahead of the clock; None for now.
        """
        key = invoice_id, at
        if key not in self._known:
            invoice, now = rows.find_public(invoice_id), app_now()
            moment = now if at is None else min(at, now)
            self._known[key] = None if invoice is None else _at(invoice, moment, _Memo(catalogue)).payer_units
        return self._known[key]


def write(catalogue: Catalogue, locked: Sequence[InvoiceRow]) -> list[InvoiceRow]:
    """Write the quotes of locked invoices up to now; return the rows as they are then. Idempotent."""
    after = seen(catalogue, locked)
    moved = [new for new, old in zip(after, locked, strict=True) if new is not old]
    if moved:
        _write_rows(moved)
        _write_quotes([quote for invoice in moved for quote in invoice.later_quotes])
    return [invoice.but(later=()) for invoice in after]


def write_before_release(catalogue: Catalogue, locked: InvoiceRow) -> None:
    """Write an invoice's quotes before a payment of it comes, changes or goes; what holds one did so until now."""
    if locked.rate_expires_at >= locked.expires_at:
        return
    if is_held(locked) or locked.status not in _MOVING:
        execute("UPDATE invoices SET quoted_until = app_now() WHERE id = %s", (locked.id,))
    else:
        write(catalogue, [locked])


def close_overdue(catalogue: Catalogue, *, limit: int) -> int:
    """Write the quotes of invoices whose time is over and that wait for their scan, so that no rate is kept for them.

    Returns how many; those that another has locked are left for the next time.
    """
    with transaction():
        found = rows.lock_overdue(limit)
        write(catalogue, found)
        execute(
            "UPDATE invoices SET quoted_until = expires_at WHERE id = ANY(%s::uuid[])", ([each.id for each in found],)
        )
    return len(found)


def forget_rates(*, limit: int) -> int:
    """Forget some rates by which no open invoice can be quoted any more; return how many."""
    return book.forget(before=rows.rates_needed_since(), limit=limit)


def is_held(invoice: InvoiceRow) -> bool:
    """Return whether payments hold the stored quote: deposits, or what waits for a block."""
    return invoice.holding_units * HOLDING_PART >= (invoice.payer_units or 0)


def _may_move(invoice: InvoiceRow) -> bool:
    return invoice.status in _MOVING and invoice.rate_expires_at < invoice.expires_at and not is_held(invoice)


def _at(invoice: InvoiceRow, now: datetime, memo: _Memo) -> InvoiceRow:
    if not _may_move(invoice) or max(invoice.rate_expires_at, invoice.quoted_until or now) > now:
        return invoice
    running = _running(invoice)
    found = generations.follow(
        running,
        until=now,
        expires_at=invoice.expires_at,
        held_until=invoice.quoted_until,
        prices=_Prices(invoice, memo, now),
        is_held=lambda quote: invoice.holding_units * HOLDING_PART >= quote.payer_units,
    )
    return invoice if found == [running] else _moved(invoice, found)


def _running(invoice: InvoiceRow) -> Generation:
    """Return the stored quote."""
    units = Quote(
        payer_units=invoice.payer_units or 0,
        fee_fixed_units=invoice.fee_fixed_units or 0,
        discount_ppm=invoice.discount_ppm,
    )
    return Generation(
        number=invoice.last_generation or invoice.generation,
        quote=units,
        valid_from=invoice.created_at,
        rate_expires_at=invoice.rate_expires_at,
        is_extended=invoice.extended_generation == (invoice.last_generation or invoice.generation),
        changed_at=invoice.updated_at,
    )


def _moved(invoice: InvoiceRow, found: Sequence[Generation]) -> InvoiceRow:
    newest = found[-1]
    return invoice.but(
        # What was found late may be judged by an earlier one than the newest.
        generation=newest.number if len(found) > 1 else invoice.generation,
        payer_units=newest.quote.payer_units,
        fee_fixed_units=newest.quote.fee_fixed_units,
        rate_expires_at=newest.rate_expires_at,
        extended_generation=newest.number if newest.is_extended else invoice.extended_generation,
        unpriced_at=newest.unpriced_at,
        updated_at=max(invoice.updated_at, _in_ms(newest.changed_at)),
        later=tuple(_quote_row(invoice, each) for each in found[1:]),
    )


def _in_ms(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _quote_row(invoice: InvoiceRow, each: Generation) -> QuoteRow:
    # An extension is of the invoice's row alone: the quote's own tells until when its rate was to hold.
    end = generations.end(each.valid_from, invoice.expires_at)
    return QuoteRow(
        invoice_id=invoice.id,
        generation=each.number,
        payer_units=each.quote.payer_units,
        fee_fixed_units=each.quote.fee_fixed_units,
        valid_from=each.valid_from,
        rate_expires_at=end,
    )


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


class _Prices:
    """Prices one invoice by the book of rates, which is read once for all quotes that follow each other."""

    def __init__(self, invoice: InvoiceRow, memo: _Memo, now: datetime) -> None:
        self._invoice, self._memo, self._now = invoice, memo, now
        self._series = plan.series_of(invoice)
        self._read: dict[datetime, Figures | None] = {}

    def at(self, moment: datetime, /) -> Quote | None:
        """Return the quote of a moment; None without a rate."""
        if moment not in self._read:
            until = min(self._invoice.expires_at, self._now)
            self._note(book.every_quote(self._series, begin=moment, until=until))
        figures = self._read[moment]
        return None if figures is None else self._memo.quote(self._invoice, self._series, figures)

    def next_after(self, moment: datetime, /, *, until: datetime) -> Priced | None:
        """Return the first moment after another one, and at `until` at the latest, that has a quote."""
        found = book.next_after(self._series, moment, until=until)
        if found is None or found.figures is None:
            return None
        quote = self._memo.quote(self._invoice, self._series, found.figures)
        return None if quote is None else Priced(found.at, quote)

    def _note(self, entries: Iterable[Entry]) -> None:
        self._read.update((entry.at, entry.figures) for entry in entries)


def _write_rows(moved: Sequence[InvoiceRow]) -> None:
    execute(
        "UPDATE invoices i SET generation = n.generation, payer_units = n.payer_units,"
        " fee_fixed_units = n.fee_fixed_units, rate_expires_at = n.rate_expires_at,"
        " extended_generation = n.extended_generation, updated_at = n.updated_at"
        " FROM unnest(%s::uuid[], %s::integer[], %s::numeric[], %s::numeric[], %s::timestamptz[], %s::integer[],"
        "  %s::timestamptz[]) AS n (id, generation, payer_units, fee_fixed_units, rate_expires_at,"
        "  extended_generation, updated_at) WHERE i.id = n.id",
        (
            [each.id for each in moved],
            [each.generation for each in moved],
            [each.payer_units for each in moved],
            [each.fee_fixed_units for each in moved],
            [each.rate_expires_at for each in moved],
            [each.extended_generation for each in moved],
            [each.updated_at for each in moved],
        ),
    )


def _write_quotes(new: Sequence[QuoteRow]) -> None:
    QuoteRow.write_all(new)

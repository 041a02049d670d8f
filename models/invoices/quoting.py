"""Computes new quotes of open invoices when they are read, and writes those by which payments and endings are judged.

An open invoice costs nothing until then: its quotes follow from its row and from the rates that models.rates.book
keeps. They are written when a payment comes, no longer holds them or is judged, and when the invoice ends.
docs/decisions/quotes.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from core.catalogue.catalogue import Catalogue
from core.rates import generations
from core.rates.generations import Generation
from core.rates.pricing import Quote
from models.db.base import execute, rows_as, transaction
from models.deposits import sightings
from models.invoices import deadlines, rows
from models.invoices.prices import PagePrices, Span
from models.invoices.rows import InvoiceRow, QuoteRow, Running
from models.invoices.shown import Shown
from models.rates import book

# In all other statuses the quote is the one by which the invoice was decided, or it can no longer be paid.
_MOVING: Final = frozenset({"check"})

_QUOTE_COLUMNS: Final = (
    "invoice_id", "generation", "payer_units", "fee_fixed_units", "valid_from", "rate_expires_at",
)  # fmt: skip
_ROW_COLUMNS: Final = (
    "id", "generation", "payer_units", "fee_fixed_units", "rate_expires_at", "extended_generation", "updated_at",
)  # fmt: skip


class Written(NamedTuple):
    """An invoice whose row was written, with what PostgreSQL set in it."""

    id: UUID
    revision: int | None
    updated_at: datetime


def seen(catalogue: Catalogue, invoices: Sequence[InvoiceRow]) -> list[Shown]:
    """Return invoices with the quotes that are in force now; nothing is written."""
    return _seen(catalogue, invoices, rows.running([each for each in invoices if each.is_run_out]))


def seen_one(catalogue: Catalogue, invoice: InvoiceRow) -> Shown:
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
            invoice = rows.find_public(invoice_id)
            self._known[key] = None if invoice is None else _units_at(catalogue, invoice, at)
        return self._known[key]


def _units_at(catalogue: Catalogue, invoice: InvoiceRow, at: datetime | None) -> int | None:
    running = rows.running([invoice] if invoice.is_run_out else [])
    if at is not None:
        running = {key: each._replace(at=min(at, each.at)) for key, each in running.items()}
    return _seen(catalogue, [invoice], running)[0].invoice.payer_units


def write(catalogue: Catalogue, locked: Sequence[InvoiceRow]) -> list[InvoiceRow]:
    """Write the quotes of locked invoices up to now; return the rows as they are then. Idempotent.

    Raises RuntimeError if a row was changed after it was read.
    """
    shown = seen_locked(catalogue, locked)
    _write(shown, locked)
    return [each.invoice for each in shown]


def seen_locked(catalogue: Catalogue, locked: Sequence[InvoiceRow]) -> list[Shown]:
    """Return locked invoices with the quotes that are in force now, which the caller writes.

    Raises RuntimeError if a row was changed after it was read.
    """
    return _seen(catalogue, locked, _running_of(locked))


def write_later(shown: Sequence[Shown]) -> None:
    """Write the derived quotes of invoices; write_rows() writes which of them are in force."""
    quotes = [quote for each in shown for quote in each.later]
    if quotes:
        # Arrays: a page has hundreds, and PostgreSQL reads their values faster than as many rows of a list.
        execute(
            f"INSERT INTO quotes ({', '.join(_QUOTE_COLUMNS)}) SELECT * FROM unnest(%s::uuid[], %s::integer[],"
            " %s::numeric[], %s::numeric[], %s::timestamptz[], %s::timestamptz[])",
            [[getattr(quote, name) for quote in quotes] for name in _QUOTE_COLUMNS],
        )


def write_rows(shown: Sequence[Shown], *, also: str = "", condition: str = "true") -> list[Written]:
    """Write into the rows of locked invoices which quotes are in force, by one statement.

    also: further assignments, among them updated_at. condition: of an invoice i. Returns those that met it.
    """
    if not shown:
        return []
    return rows_as(
        Written,
        "UPDATE invoices i SET generation = n.generation, payer_units = n.payer_units,"
        " fee_fixed_units = n.fee_fixed_units, rate_expires_at = n.rate_expires_at,"
        f" extended_generation = n.extended_generation, {also or 'updated_at = n.updated_at'}"
        " FROM unnest(%s::uuid[], %s::integer[], %s::numeric[], %s::numeric[], %s::timestamptz[], %s::integer[],"
        "  %s::timestamptz[]) AS n (id, generation, payer_units, fee_fixed_units, rate_expires_at,"
        f"  extended_generation, updated_at) WHERE i.id = n.id AND {condition}"
        " RETURNING i.id, i.revision, i.updated_at",
        [[getattr(each.invoice, name) for each in shown] for name in _ROW_COLUMNS],
    )


def write_before_change(catalogue: Catalogue, locked: Sequence[InvoiceRow]) -> list[UUID]:
    """Write the quotes of locked invoices up to now, before payments of them come, change or go.

    Returns the ids of those whose last quote is held by payments though its rate is over: see release().
    """
    running = _running_of(locked)
    shown = _seen(catalogue, locked, running)
    _write(shown, locked)
    return [each.invoice.id for each in shown if _is_still_held(each.invoice, running.get(each.invoice.id))]


def write_before_release(catalogue: Catalogue, locked: InvoiceRow) -> None:
    """Write an invoice's quotes before one of its deposits goes; if payments hold the last, they do so until now."""
    if locked.rate_expires_at >= locked.expires_at:
        return
    if locked.status not in _MOVING or write_before_change(catalogue, [locked]):
        execute("UPDATE invoices SET quoted_until = app_now() WHERE id = %s", (locked.id,))


def release(catalogue: Catalogue, invoice_ids: Collection[UUID], *, now: datetime) -> None:
    """End the holds of locked invoices that no payment keeps up; write the quotes that begin with that.

    held: from write_before_change() in the same transaction, before the payments changed. now: PostgreSQL's, of after
    it. The sightings that let go lose their moments.
    """
    released = rows.end_holds(invoice_ids, now=now) if invoice_ids else []
    if released:
        sightings.lose_moments(released)
        write(catalogue, rows.lock_all(released))


def close_overdue(catalogue: Catalogue, *, limit: int) -> int:
    """Write the quotes of invoices that wait for their scan hours after their expiry, so that no rate is kept for them.

    Returns how many; those that another has locked are left for the next time.
    """
    with transaction():
        overdue = deadlines.lock_overdue(limit)
        if overdue:
            write(catalogue, overdue)
            execute(
                "UPDATE invoices SET quoted_until = expires_at WHERE id = ANY(%s::uuid[])",
                ([each.id for each in overdue],),
            )
    return len(overdue)


def take_back_future(*, limit: int) -> int:
    """Take back quotes that a clock wrote while it was ahead; return how many. Call outside of transactions.

    It walks all open invoices, `limit` a transaction, so that a page stays done if a later one fails.
    """
    taken, place = 0, (datetime.fromtimestamp(0, UTC), UUID(int=0))
    while page := rows.open_page(place, limit):
        with transaction():
            taken += rows.take_back_future([invoice_id for _, invoice_id in page])
        place = page[-1]
    return taken


def forget_rates(*, limit: int) -> int:
    """Delete some rates that no open invoice can need for a quote; return how many."""
    return book.forget(before=deadlines.rates_needed_since(), limit=limit)


def _running_of(locked: Sequence[InvoiceRow]) -> dict[UUID, Running]:
    run_out = [each for each in locked if each.is_run_out]
    running = rows.running(run_out)
    if len(running) != len(run_out):
        raise RuntimeError("an invoice was changed after it was read, and before its quotes were written")
    return running


def _write(shown: Sequence[Shown], locked: Sequence[InvoiceRow]) -> None:
    moved = [new for new, old in zip(shown, locked, strict=True) if new.invoice is not old]
    if moved:
        write_rows(moved)
        write_later(moved)


def _is_over(invoice: InvoiceRow, running: Running) -> bool:
    """Return whether the rate of the stored quote is over, and the payment that held it last lets go."""
    begin = _next_begin(invoice)
    return begin < invoice.expires_at and begin <= running.at


def _is_still_held(invoice: InvoiceRow, running: Running | None) -> bool:
    return running is not None and _is_over(invoice, running) and running.is_holding(invoice.payer_units)


def _next_begin(invoice: InvoiceRow) -> datetime:
    if invoice.quoted_until is None:
        return invoice.rate_expires_at
    return max(invoice.rate_expires_at, invoice.quoted_until)


def _seen(catalogue: Catalogue, invoices: Sequence[InvoiceRow], running: Mapping[UUID, Running]) -> list[Shown]:
    moving = [
        (invoice, of)
        for invoice in invoices
        if (of := running.get(invoice.id)) and _is_over(invoice, of) and not of.is_holding(invoice.payer_units)
    ]
    page = PagePrices(catalogue, [Span(invoice, _next_begin(invoice), of.at) for invoice, of in moving])
    after = {invoice.id: _followed(invoice, of, page.of(invoice, now=of.at)) for invoice, of in moving}
    return [after.get(invoice.id) or Shown(invoice) for invoice in invoices]


def _followed(invoice: InvoiceRow, running: Running, prices: generations.Prices) -> Shown:
    first = _stored(invoice, running.last_generation)
    followed = generations.follow(
        first,
        until=running.at,
        expires_at=invoice.expires_at,
        quote_s=invoice.each_quote_s,
        held_until=invoice.quoted_until,
        prices=prices,
        is_held=lambda quote: running.is_holding(quote.payer_units),
    )
    return Shown(invoice) if followed == [first] else _moved(invoice, followed)


def _stored(invoice: InvoiceRow, number: int) -> Generation:
    """Return the stored quote, which may be an earlier one by its price and is the newest by its time."""
    units = Quote(
        payer_units=invoice.payer_units or 0,
        fee_fixed_units=invoice.fee_fixed_units or 0,
        discount_ppm=invoice.discount_ppm,
    )
    return Generation(
        number=number,
        quote=units,
        valid_from=invoice.created_at,
        rate_expires_at=invoice.rate_expires_at,
        is_extended=invoice.extended_generation == number,
        changed_at=invoice.updated_at,
    )


def _moved(invoice: InvoiceRow, followed: Sequence[Generation]) -> Shown:
    newest = followed[-1]
    after = invoice.but(
        # A payment found late may be judged by an earlier quote than the newest.
        generation=newest.number if len(followed) > 1 else invoice.generation,
        payer_units=newest.quote.payer_units,
        fee_fixed_units=newest.quote.fee_fixed_units,
        rate_expires_at=newest.rate_expires_at,
        extended_generation=newest.number if newest.is_extended else invoice.extended_generation,
        updated_at=max(invoice.updated_at, _in_ms(newest.changed_at)),
    )
    return Shown(after, newest.unpriced_at, tuple(_quote_row(invoice, each) for each in followed[1:]))


def _in_ms(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _quote_row(invoice: InvoiceRow, each: Generation) -> QuoteRow:
    # An extension changes only the invoice's row: the quote's own end is until when its rate was to hold.
    end = generations.end(each.valid_from, expires_at=invoice.expires_at, quote_s=invoice.each_quote_s)
    return QuoteRow(
        invoice_id=invoice.id,
        generation=each.number,
        payer_units=each.quote.payer_units,
        fee_fixed_units=each.quote.fee_fixed_units,
        valid_from=each.valid_from,
        rate_expires_at=end,
    )

"""Invoices and their quotes: rows and reads.

Written by actors.invoices.calls (create, select) and models.invoices.settlement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from core.invoices.states import InvoiceStatus
from core.rates.generations import QUOTE_S
from core.rates.pricing import Quote
from models.addresses.rows import AddressOwner
from models.db import locks
from models.db.base import app_now, column, execute, rows, rows_as
from models.db.clock import FUTURE_MAX_S
from models.db.locks import LockSeed
from models.db.table import BY_DATABASE, Big, Table, Units, derived
from models.deposits import sightings

_LIVE: Final = "(i.status IN ('select', 'check') OR (i.status = 'wrong_amount' AND NOT i.is_final))"


# Deposits made in time hold a quote once they reach this part of it: a tenth.
HOLDING_PART: Final = 10
# Longer than any invoice lives: a quote without an end of its own ends with its invoice.
LIFETIME_CEILING_S: Final = 86_400


class Waiting(NamedTuple):
    """What was paid in time and is in no block yet, and the newest transaction of it."""

    units: int
    txid: str


# In one subquery, since PostgreSQL takes longer to plan it than to run it.
_WAITING: Final = (
    "CASE WHEN i.status = 'check' THEN (SELECT ARRAY[sum(s.units)::text,"
    f" (array_agg(s.txid ORDER BY s.seen_at DESC, s.txid))[1]] FROM sightings s WHERE {sightings.SHOWN}) END"
)


def _waiting(values: list[str] | None) -> Waiting | None:
    return None if values is None or values[0] is None else Waiting(int(values[0]), values[1])


class InvoiceRow(Table, table="invoices i", joins="LEFT JOIN chain_cursors c ON c.network = i.network"):
    """An invoice as stored, with the height that its network's scan has reached."""

    id: UUID
    merchant_id: UUID
    order_id: str | None
    status: InvoiceStatus
    is_final: bool = False
    is_multi: bool
    price_currency: str
    price_units: Units
    pay_currency: str | None = None
    network: str | None = None
    payer_units: Units | None = None
    generation: int = 0
    address_ordinal: Big | None = None
    address: str = ""
    required_confirmations: int = 0
    accuracy_ppm: int
    discount_ppm: int = 0
    subtract_percent: int
    fee_ppm: int
    fee_fixed_usd_cents: int
    fee_fixed_units: Units | None = None
    confirmed_units: Units = 0
    detected_units: Units = 0
    deposit_height: Big | None = None
    # The confirmations that this deposit takes at least, as a block reward does.
    deposit_depth_min: int | None = None
    fee_fixed_taken_units: Units = 0
    txid: str = ""
    payer_address: str = ""
    decided_at: datetime | None = None
    accepted_units: Units | None = None
    url_callback: str | None = None
    url_return: str = ""
    url_success: str = ""
    additional_data: str = ""
    payer_email: str = ""
    theme: str
    is_payment_multiple: bool
    # The moments come from the statement that creates it.
    created_at: datetime = BY_DATABASE
    updated_at: datetime = BY_DATABASE
    expires_at: datetime = BY_DATABASE
    rate_expires_at: datetime = BY_DATABASE
    extended_generation: int | None = None
    # Before this moment no further quote begins: a payment held the last one until then.
    quoted_until: datetime | None = None
    is_credit_due: bool | None = None
    # Counts the payment's events; the growth flag is set while confirmed money awaits its event.
    revision: int | None = None
    is_growth_due: bool | None = None
    receipt_at: datetime | None = BY_DATABASE
    # The X-Request-Id of the call that created it, if known.
    request_id: str | None = None
    # The payment link that it was checked out by.
    link_id: UUID | None = None
    # By whom: a keyed digest of the buyer's address.
    link_source: str | None = None
    # How long each of its quotes holds, as at its creation; None: QUOTE_S.
    quote_s: int | None = None
    scanned_height: int | None = derived("c.height")
    # While it is open alone.
    waiting: Waiting | None = derived(_WAITING, made=_waiting)
    # Whether its stored rate is over, so that later quotes may follow it: models.invoices.quoting.
    is_run_out: bool = derived(
        "i.status = 'check' AND i.rate_expires_at < i.expires_at AND i.rate_expires_at <= app_now()"
    )

    @property
    def each_quote_s(self) -> int:
        """Return how long each of its quotes holds."""
        return self.quote_s or QUOTE_S

    @property
    def sighted_units(self) -> int:
        """Return what was paid in time and is in no block yet; nothing of a row that was just made."""
        waiting = vars(self).get("waiting")
        return waiting.units if waiting else 0

    @property
    def paid_units(self) -> int:
        """Return all that was detected, in a block or in none yet."""
        return self.detected_units + self.sighted_units

    @property
    def shown_txid(self) -> str:
        """Return the newest transaction that pays it, in a block or in none yet."""
        waiting = vars(self).get("waiting")
        return waiting.txid if waiting else self.txid

    @property
    def needed_confirmations(self) -> int:
        """Return the confirmations from which its deposits count: its network's, or more that one takes itself."""
        return max(self.required_confirmations, self.deposit_depth_min or 0)

    @property
    def confirmations(self) -> int:
        """Return the confirmations of the youngest counted deposit, by the scan; 0 if no block has it yet."""
        if self.sighted_units or self.deposit_height is None or self.scanned_height is None:
            return 0
        # Capped, so that a final object stays as it is while its chain grows.
        return min(self.needed_confirmations, max(0, self.scanned_height - self.deposit_height + 1))


class QuoteRow(Table, table="quotes"):
    """A generation of an invoice's quote."""

    invoice_id: UUID
    generation: int
    payer_units: Units
    fee_fixed_units: Units
    valid_from: datetime
    rate_expires_at: datetime
    # Of the quote of a revival: a payment that was seen after this moment is judged by no earlier quote.
    earlier_until: datetime | None = None


class Running(NamedTuple):
    """The stored quote of an invoice whose rate is over, at a moment."""

    id: UUID
    at: datetime
    held_units: int
    # The newest quote that is written, which need not be the one that the invoice is judged by.
    last_generation: int

    def is_holding(self, payer_units: int | None) -> bool:
        """Return True if deposits, or payments that wait for a block, hold a quote of this many units."""
        return self.held_units * HOLDING_PART >= (payer_units or 0)


def running(run_out: Sequence[InvoiceRow]) -> dict[UUID, Running]:
    """Return what holds the quotes of invoices whose rate is over, by id; nothing of one that was changed meanwhile.

    Asked for apart from the rows: most invoices are looked at while their rate holds.
    """
    if not run_out:
        return {}
    quotes = rows_as(
        Running,
        f"SELECT i.id, app_now() AS at, {sightings.HELD_UNITS} AS held_units,"
        " COALESCE((SELECT max(q.generation) FROM quotes q WHERE q.invoice_id = i.id), i.generation) AS last_generation"
        " FROM unnest(%s::uuid[], %s::integer[], %s::timestamptz[], %s::timestamptz[])"
        "  AS r (id, generation, rate_expires_at, quoted_until) JOIN invoices i ON i.id = r.id AND i.status = 'check'"
        " WHERE (i.generation, i.rate_expires_at) = (r.generation, r.rate_expires_at)"
        " AND i.quoted_until IS NOT DISTINCT FROM r.quoted_until",
        (
            [each.id for each in run_out],
            [each.generation for each in run_out],
            [each.rate_expires_at for each in run_out],
            [each.quoted_until for each in run_out],
        ),
    )
    return {each.id: each for each in quotes}


def end_holds(invoice_ids: Collection[UUID], *, now: datetime) -> list[UUID]:
    """Note of locked invoices whose quotes no payment holds any longer that one did so until now; return their ids."""
    return column(
        "UPDATE invoices i SET quoted_until = %s WHERE i.id = ANY(%s::uuid[]) AND i.status = 'check'"
        f" AND {sightings.HELD_UNITS} * {HOLDING_PART} < i.payer_units RETURNING i.id",
        (now, list(invoice_ids)),
    )


def find(merchant_id: UUID, *, invoice_id: UUID) -> InvoiceRow | None:
    """Return a merchant's invoice; another merchant's is as absent as a missing one."""
    return InvoiceRow.first("i.id = %s AND i.merchant_id = %s", (invoice_id, merchant_id))


def find_by_order(merchant_id: UUID, order_id: str, *, then: str = "") -> InvoiceRow | None:
    """Return the newest live invoice of an order_id, else the newest."""
    return InvoiceRow.first(
        f"i.merchant_id = %s AND i.order_id = %s ORDER BY {_LIVE} DESC, i.created_at DESC, i.id DESC LIMIT 1 {then}",
        (merchant_id, order_id),
    )


def look_up(merchant_id: UUID, *, uuid: str | None, order_id: str | None) -> InvoiceRow | None:
    """Return a merchant's invoice by uuid, or else by order_id."""
    if uuid is not None:
        return find(merchant_id, invoice_id=UUID(uuid))
    return find_by_order(merchant_id, order_id or "")


def find_live_by_order(merchant_id: UUID, order_id: str) -> InvoiceRow | None:
    """Return the newest invoice for an order_id if it is live; else None."""
    newest = find_by_order(merchant_id, order_id)
    return newest if newest is not None and is_live(newest) else None


def find_public(invoice_id: UUID) -> InvoiceRow | None:
    """Return an invoice by the id that its buyer holds."""
    return InvoiceRow.first("i.id = %s", (invoice_id,))


def lock(invoice_id: UUID) -> InvoiceRow | None:
    """Lock an invoice until the transaction ends."""
    return InvoiceRow.first("i.id = %s FOR UPDATE OF i", (invoice_id,))


def lock_all(invoice_ids: Sequence[UUID]) -> list[InvoiceRow]:
    """Lock invoices, in the order of their ids."""
    return InvoiceRow.read("i.id = ANY(%s::uuid[]) ORDER BY i.id FOR UPDATE OF i", (list(invoice_ids),))


def lock_quoted(invoice_ids: Sequence[UUID]) -> list[InvoiceRow]:
    """Lock those of some open invoices whose stored quote may be followed by another, now or later."""
    return InvoiceRow.read(
        "i.id = ANY(%s::uuid[]) AND i.status = 'check' AND i.rate_expires_at < i.expires_at"
        " ORDER BY i.id FOR UPDATE OF i",
        (list(invoice_ids),),
    )


def lock_free(invoice_ids: Collection[UUID]) -> tuple[list[InvoiceRow], set[UUID]]:
    """Lock those of some invoices that no other transaction has locked.

    Returns those of them whose stored quote may be followed by another, and the ids that were not free.
    """
    sql = "SELECT i.id FROM invoices i WHERE i.id = ANY(%s::uuid[]) FOR UPDATE SKIP LOCKED"
    free = column(sql, (list(invoice_ids),)) if invoice_ids else []
    # Read after they were locked: as the last transaction left them.
    return lock_quoted(free) if free else [], set(invoice_ids).difference(free)


def lock_open(invoice_id: UUID) -> InvoiceRow | None:
    """Lock an invoice that is not decided; None if it is, or if another has it locked."""
    return InvoiceRow.first("i.id = %s AND i.status IN ('select', 'check') FOR UPDATE OF i SKIP LOCKED", (invoice_id,))


def lock_last_by_order(merchant_id: UUID, order_id: str) -> InvoiceRow | None:
    """Serialise creation for this order_id, then lock its newest invoice, live ones first."""
    locks.wait_turn(f"{merchant_id}{order_id}", seed=LockSeed.INVOICE_ORDER)
    return find_by_order(merchant_id, order_id, then="FOR UPDATE OF i")


def is_live(invoice: InvoiceRow) -> bool:
    """Return True if an invoice still counts for its order_id: it can be paid, or resolved."""
    return invoice.status in {"select", "check"} or (invoice.status == "wrong_amount" and not invoice.is_final)


# Up to this, a transaction that began earlier may read what a later one has just written.
_FUTURE: Final = f"(SELECT app_now() + interval '{FUTURE_MAX_S} seconds')"
# A quote q that begins later than now, and is not the first of its invoice.
_AHEAD: Final = (
    f"q.invoice_id = {{of}} AND q.valid_from > {_FUTURE}"
    " AND EXISTS (SELECT 1 FROM quotes e WHERE e.invoice_id = q.invoice_id AND e.generation < q.generation)"
)
# An expiry and an invoice: where a walk of open invoices has come to.
Place = tuple[datetime, UUID]


def open_page(after: Place, limit: int) -> list[Place]:
    """Return (expiry, invoice) of open invoices whose time runs, in this order, behind a place."""
    return rows(
        "SELECT expires_at, id FROM invoices WHERE status IN ('select', 'check') AND expires_at > app_now()"
        " AND (expires_at, id) > (%s, %s) ORDER BY expires_at, id LIMIT %s",
        (*after, limit),
    )


def take_back_future(invoice_ids: Collection[UUID]) -> int:
    """Take back quotes of these invoices that begin later than now, unless payments hold the last; return how many.

    The clock was ahead when they were written: the page would show the last of them until the expiry, and a payment
    would be judged by the first. The first quote of an invoice remains: no earlier one was shown.
    """
    ahead = column(
        "SELECT i.id FROM invoices i WHERE i.id = ANY(%s::uuid[]) AND i.status = 'check'"
        " AND i.rate_expires_at <= i.expires_at"
        f" AND (i.quoted_until > {_FUTURE} OR EXISTS (SELECT 1 FROM quotes q WHERE {_AHEAD.format(of='i.id')}))"
        f" AND {sightings.HELD_UNITS} * {HOLDING_PART} < i.payer_units ORDER BY i.id FOR UPDATE OF i",
        (list(invoice_ids),),
    )
    if not ahead:
        return 0
    execute(f"DELETE FROM quotes q WHERE {_AHEAD.format(of='ANY(%s::uuid[])')}", (ahead,))
    return execute(
        "UPDATE invoices i SET generation = q.generation, payer_units = q.payer_units,"
        " fee_fixed_units = q.fee_fixed_units, rate_expires_at = q.rate_expires_at, extended_generation = NULL,"
        " quoted_until = CASE WHEN i.quoted_until <= app_now() THEN i.quoted_until END,"
        " updated_at = date_trunc('milliseconds', app_now()) FROM (SELECT DISTINCT ON (invoice_id) * FROM quotes"
        "  WHERE invoice_id = ANY(%s::uuid[]) ORDER BY invoice_id, generation DESC) q WHERE i.id = q.invoice_id",
        (ahead,),
    )


def reread(invoice_id: UUID) -> InvoiceRow:
    """Return an invoice that this transaction wrote."""
    invoice = find_public(invoice_id)
    if invoice is None:
        raise LookupError(f"invoice {invoice_id} vanished while it was locked")
    return invoice


def raise_revision(invoice_id: UUID) -> InvoiceRow:
    """Number the next event of a locked invoice, which announces all its growth; return the row."""
    execute(
        "UPDATE invoices SET revision = COALESCE(revision, 0) + 1, is_growth_due = NULL,"
        " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s",
        (invoice_id,),
    )
    return reread(invoice_id)


def is_past_expiry(invoice: InvoiceRow) -> bool:
    """Return whether the clock has reached an invoice's expiry."""
    return app_now() >= invoice.expires_at


def reopen(invoice: InvoiceRow, *, lifetime_s: int, quote_s: int | None) -> None:
    """Give an expired invoice a new expiry, in the status that its coin calls for."""
    execute(
        "UPDATE invoices SET status = CASE WHEN pay_currency IS NULL THEN 'select' ELSE 'check' END, is_final = false,"
        " quoted_until = NULL, expires_at = date_trunc('second', app_now()) + make_interval(secs => %s),"
        " rate_expires_at = date_trunc('second', app_now()) + make_interval(secs => %s),"
        " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s AND status = 'expired'",
        (lifetime_s, min(lifetime_s, quote_s or lifetime_s), invoice.id),
    )


def add_quote(invoice: InvoiceRow, quote: Quote, *, generation: int) -> None:
    """Put the quote of a revival in force; its rate holds as long as the stored row says.

    invoice: the row before reopen(). Its expiry ends the earlier quotes: a payment that was seen later holds none.
    """
    execute(
        "UPDATE invoices SET generation = %s, payer_units = %s, fee_fixed_units = %s WHERE id = %s",
        (generation, quote.payer_units, quote.fee_fixed_units, invoice.id),
    )
    _record_quote(invoice.id, earlier_until=invoice.expires_at)


def _record_quote(invoice_id: UUID, *, earlier_until: datetime | None = None) -> None:
    execute(
        "INSERT INTO quotes (invoice_id, generation, payer_units, fee_fixed_units, valid_from, rate_expires_at,"
        " earlier_until) SELECT id, generation, payer_units, fee_fixed_units, app_now(), rate_expires_at, %s"
        " FROM invoices WHERE id = %s",
        (earlier_until, invoice_id),
    )


def choose(
    invoice: InvoiceRow, columns: Mapping[str, object], *, address: str, ordinal: int, family: str, quote_s: int | None
) -> None:
    """Fix the coin of a locked invoice in select, with its address and first quote."""
    names = ", ".join(columns)
    marks = ", ".join(["%s"] * len(columns))
    execute(
        f"UPDATE invoices SET ({names}) = ({marks}), status = 'check', address = %s, address_ordinal = %s,"
        " rate_expires_at = LEAST(expires_at, date_trunc('second', app_now()) + make_interval(secs => %s)),"
        " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s AND status = 'select'",
        (*columns.values(), address, ordinal, quote_s or LIFETIME_CEILING_S, invoice.id),
    )
    AddressOwner(family=family, ordinal=ordinal, owner_kind="invoice", owner_id=invoice.id).write()
    _record_quote(invoice.id)

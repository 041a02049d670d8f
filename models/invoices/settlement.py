"""Settles invoices: confirms and credits deposits, and is the only writer of an invoice's sums and status.

Called by actors.scan.follow after a block, by actors.invoices.ticks when time passed or credits are left, and by
models.outcomes.reversals. Safe to run any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from core.addresses.addresses import AddressError, display, parse
from core.catalogue.catalogue import Catalogue, Network
from core.invoices import states
from core.invoices.states import InvoiceStatus
from models.db.after_commit import count, then
from models.db.base import app_now, execute, repeat_on_deadlock, transaction
from models.deposits import crediting, cursors, sightings
from models.deposits import rows as deposits
from models.deposits.rows import Deposit
from models.invoices import events, quoting, receipts, tallies, views
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow, QuoteRow
from models.invoices.tallies import Tally
from models.webhooks import outbox

log = structlog.get_logger()

# paid can fall back to check and rise again in one settlement; more rounds than this would be a loop.
JUDGEMENTS_MAX: Final = 4
# The resolution of PostgreSQL's moments.
_NEXT: Final = timedelta(microseconds=1)
# Deposits below the smallest amount are ignored if together they are at most a tenth of the others.
SPECKS_PART: Final = 10
# Many tiny deposits must not hold a lock for long, let a call outlive its caller, or delay a scan.
DEPOSITS_PER_PAGE: Final = 100
PAGES_PER_STEP: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """An invoice with the sums of its deposits and the quote by which it is judged."""

    invoice: InvoiceRow
    tallies: Sequence[Tally]
    quote: QuoteRow | None
    expiry_passed: bool
    # The network's smallest amount, in the ledger's units; 0 before a coin is chosen.
    small_below: int
    # Payments made in time that no block has yet.
    sighted: int

    @property
    def counted(self) -> list[Tally]:
        return [t for t in self.tallies if t.is_counted]

    @property
    def confirmed(self) -> list[Tally]:
        return [t for t in self.tallies if t.is_confirmed]

    @property
    def confirmed_units(self) -> int:
        return sum(t.units for t in self.confirmed)

    @property
    def undecided_strays(self) -> int:
        """Count the confirmed deposits of another asset or network that were neither accepted nor sent back."""
        return sum(t.count for t in self._strays if t.status == "confirmed" and not t.is_refunded)

    @property
    def resolved_strays(self) -> int:
        """Count the confirmed deposits of another asset or network that were accepted or sent back."""
        return sum(
            t.count for t in self._strays if t.status == "credited" or (t.status == "confirmed" and t.is_refunded)
        )

    @property
    def _strays(self) -> list[Tally]:
        return [t for t in self.tallies if t.is_stray]

    @property
    def hides_specks(self) -> bool:
        """Return whether deposits below the network's smallest amount name neither payer nor transaction.

        So it is where the others pay the price, or bring ten times as much.
        """
        rest_units = sum(t.units for t in self.counted if not t.is_small)
        specks_units = sum(t.units for t in self.counted if t.is_small)
        if self.quote and not states.is_short(rest_units, self.quote.payer_units, self.invoice.accuracy_ppm):
            return True
        return specks_units * SPECKS_PART <= rest_units

    @property
    def shown(self) -> list[Tally]:
        return [t for t in self.counted if not (t.is_small and self.hides_specks)]

    @property
    def payer(self) -> str:
        """Return the sender of all shown deposits, in the stored form; empty if several paid.

        Otherwise a refund could go to a buyer who paid the smaller part.
        """
        senders = {sender for t in self.shown for sender in (t.sender_first, t.sender_last)}
        return senders.pop() if len(senders) == 1 else ""


def settle(catalogue: Catalogue, invoice_id: UUID, *, is_due: bool = False) -> None:
    """Settle one invoice in pages, each a transaction of its own.

    It is judged once all deposits that are deep enough are confirmed. The next step finds the rest: pending deposits
    that are deep enough, or an invoice whose row says that credits are due. is_due: only if the invoice is still open
    and no other thread has locked it.
    """
    for _ in range(PAGES_PER_STEP):
        if repeat_on_deadlock(_settle_page, catalogue, invoice_id, is_due=is_due):
            return


def settle_locked(catalogue: Catalogue, invoice_id: UUID) -> None:
    """Settle one invoice inside the caller's transaction, by one page; actors.invoices.ticks settles the others."""
    invoice = invoices.lock(invoice_id)
    if invoice is not None:
        receipts.wait_turn(invoice)
        (invoice,) = quoting.write(catalogue, [invoice])
        confirmed = _confirm_some(catalogue, invoice)
        _judge(catalogue, invoice, has_grown=confirmed.has_grown)


def subtract(invoice_id: UUID, reversed_one: Deposit) -> None:
    """Subtract a reversed deposit, as it was before, from its locked invoice's sums; the caller judges later."""
    if reversed_one.stray_reason is not None:
        return
    confirmed_units = 0 if reversed_one.status == "pending" else reversed_one.amount_units
    execute(
        # A deposit that was never settled was not added.
        "UPDATE invoices SET confirmed_units = confirmed_units - %s,"
        " detected_units = GREATEST(detected_units - %s, confirmed_units - %s),"
        " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s",
        (confirmed_units, reversed_one.amount_units, confirmed_units, invoice_id),
    )


def _settle_page(catalogue: Catalogue, invoice_id: UUID, *, is_due: bool) -> bool:
    """Settle one page; return True if it was the last one."""
    with transaction():
        invoice = invoices.lock_open(invoice_id) if is_due else invoices.lock(invoice_id)
        if invoice is None:
            return True
        receipts.wait_turn(invoice)
        (invoice,) = quoting.write(catalogue, [invoice])
        confirmed = _confirm_some(catalogue, invoice)
        if confirmed.is_more:
            _add(invoice, confirmed)
            return False
        if not confirmed.count and _credit_more(catalogue, invoice):
            return False
        return _judge(catalogue, invoice, has_grown=confirmed.has_grown)


def _judge(catalogue: Catalogue, invoice: InvoiceRow, *, has_grown: bool) -> bool:
    """Write an invoice's sums and status, and credit a page if it is decided; return True if that was the last."""
    standing = _standing(catalogue, invoice)
    status = _judged(standing)
    is_last = status not in states.DECIDED_STATUSES or not _credit_some(catalogue, standing)
    _write(catalogue, standing, status)
    _emit(catalogue, invoice, status, has_grown=has_grown or bool(invoice.is_growth_due))
    return is_last


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """The result of a confirmed page: number of deposits, sum of those that count, and whether more are deep enough.

    has_grown: money came that counts or that resolve can settle; dust is neither.
    """

    count: int
    units: int
    has_grown: bool
    is_more: bool


def _confirm_some(catalogue: Catalogue, invoice: InvoiceRow) -> _Confirmed:
    """Confirm a page of the deposits that are deep enough."""
    due = deposits.pending_due(catalogue, invoice.id, limit=DEPOSITS_PER_PAGE + 1)
    confirmed = [deposit for deposit in due[:DEPOSITS_PER_PAGE] if deposits.confirm(deposit.id)]
    for deposit in confirmed:
        crediting.book_confirmed(deposit, invoice.merchant_id)
    units = sum(d.amount_units for d in confirmed if d.stray_reason is None)
    has_grown = any(d.stray_reason != "dust" for d in confirmed)
    return _Confirmed(len(confirmed), units, has_grown, len(due) > DEPOSITS_PER_PAGE)


def _add(invoice: InvoiceRow, confirmed: _Confirmed) -> None:
    """Add a confirmed page to an invoice's sums; only the last page sums up all deposits, and judges."""
    if confirmed.has_grown:
        execute(
            "UPDATE invoices SET confirmed_units = confirmed_units + %s,"
            " detected_units = GREATEST(detected_units, confirmed_units + %s), is_growth_due = true,"
            " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s",
            (confirmed.units, confirmed.units, invoice.id),
        )


def _standing(catalogue: Catalogue, invoice: InvoiceRow) -> _Standing:
    quotes = QuoteRow.read("invoice_id = %s ORDER BY generation", (invoice.id,))
    ends = _ends(quotes)
    moments = sorted({*ends})
    small_below = _smallest(catalogue, invoice)
    tallied = tallies.of_invoice(invoice.id, expires_at=invoice.expires_at, moments=moments, small_below=small_below)
    in_time = [t for t in tallied if t.is_counted and t.is_in_time]
    return _Standing(
        invoice=invoice,
        tallies=tallied,
        quote=_quote_held(quotes, [moments.index(end) for end in ends], in_time),
        expiry_passed=_expiry_passed(invoice),
        small_below=small_below,
        sighted=sightings.awaited(invoice.id) if invoice.status == "check" else 0,
    )


def _smallest(catalogue: Catalogue, invoice: InvoiceRow) -> int:
    """Return the smallest amount of an invoice's coin on its network, in the ledger's units; 0 without a coin."""
    if invoice.pay_currency is None or invoice.network is None:
        return 0
    return catalogue.smallest_deposit(catalogue.pairs[invoice.pay_currency, invoice.network])


def _ends(quotes: Sequence[QuoteRow]) -> list[datetime]:
    """Return the moment from which payments are too late for each quote but the newest.

    That is the begin of the next quote, or the former expiry if the invoice was revived after it.
    """
    ends: list[datetime] = []
    former_expiry = None
    for after in reversed(quotes[1:]):
        if after.earlier_until is not None:
            former_expiry = after.earlier_until + _NEXT
        ends.append(after.valid_from if former_expiry is None else min(after.valid_from, former_expiry))
    return ends[::-1]


def _quote_held(quotes: Sequence[QuoteRow], ends: Sequence[int], in_time: Sequence[Tally]) -> QuoteRow | None:
    """Return the first quote of which deposits reached a part before it ended; else the newest.

    ends: the places of the quotes' ends among the moments of the tallies.
    """
    for quote, place in zip(quotes, ends, strict=False):
        seen_units = sum(t.units for t in in_time if t.moments_before <= place)
        if seen_units * invoices.HOLDING_PART >= quote.payer_units:
            return quote
    return quotes[-1] if quotes else None


def _expiry_passed(invoice: InvoiceRow) -> bool:
    if invoice.network is None:
        return app_now() >= invoice.expires_at
    return cursors.has_passed(invoice.network, invoice.expires_at)


def _judged(standing: _Standing) -> InvoiceStatus:
    status = standing.invoice.status
    for _ in range(JUDGEMENTS_MAX):
        after = states.judge(_facts(standing, status))
        if after == status:
            return status
        states.check_transition(states.INVOICE_TRANSITIONS, status, after)
        status = after
    return status


def _facts(standing: _Standing, status: InvoiceStatus) -> states.InvoiceFacts:
    invoice = standing.invoice
    # A deposit that was refunded and came again after a reorg pays for nothing.
    in_time = [t for t in standing.confirmed if t.is_in_time and not t.has_refund]
    return states.InvoiceFacts(
        status=status,
        target_units=standing.quote.payer_units if standing.quote else None,
        accuracy_ppm=invoice.accuracy_ppm,
        confirmed_in_time_units=sum(t.units for t in in_time),
        confirmed_units=standing.confirmed_units,
        small_units=sum(t.units for t in standing.confirmed if t.is_small),
        pending_in_time=sum(
            t.count for t in standing.tallies if t.status == "pending" and t.stray_reason != "dust" and t.is_in_time
        )
        + standing.sighted,
        resolvable_strays=standing.undecided_strays,
        expiry_passed=standing.expiry_passed,
        resolved_strays=standing.resolved_strays,
        accepted_units=invoice.accepted_units,
        has_refund=any(t.has_refund for t in standing.counted),
    )


def _credit_more(catalogue: Catalogue, invoice: InvoiceRow) -> bool:
    """Credit a page of an invoice that stays decided by its row, if more than one page is due; True if it did.

    Uses the sums and the quote of the last judgement, so that deposits need not be summed up for every page.
    """
    if invoice.is_growth_due or invoice.status not in states.DECIDED_STATUSES:
        return False
    if states.judge(_facts_of_row(invoice)) != invoice.status:
        return False
    due = deposits.credit_due(invoice.id, limit=DEPOSITS_PER_PAGE + 1)
    if len(due) <= DEPOSITS_PER_PAGE:
        return False
    _credit(catalogue, invoice, due, fee_fixed_units=invoice.fee_fixed_units or 0)
    return True


def _facts_of_row(invoice: InvoiceRow) -> states.InvoiceFacts:
    """Return the facts in an invoice's row by which it stays decided: units confirmed, asked and accepted."""
    return states.InvoiceFacts(
        status=invoice.status,
        target_units=invoice.payer_units,
        accuracy_ppm=invoice.accuracy_ppm,
        confirmed_in_time_units=0,
        confirmed_units=invoice.confirmed_units,
        # An overpayment was judged when the sum grew; a reorg only subtracts.
        small_units=0 if invoice.status == "paid_over" else invoice.confirmed_units,
        pending_in_time=0,
        resolvable_strays=0,
        expiry_passed=False,
        accepted_units=invoice.accepted_units,
    )


def _credit_some(catalogue: Catalogue, standing: _Standing) -> bool:
    """Credit a page of confirmed deposits; return True if there are more."""
    if standing.quote is None:
        raise states.ForbiddenTransitionError("a decided invoice has a quote")
    due = deposits.credit_due(standing.invoice.id, limit=DEPOSITS_PER_PAGE + 1)
    return _credit(catalogue, standing.invoice, due, fee_fixed_units=standing.quote.fee_fixed_units)


def _credit(catalogue: Catalogue, invoice: InvoiceRow, due: Sequence[Deposit], *, fee_fixed_units: int) -> bool:
    """Credit a page of due deposits; return True if there are more, and record that in the invoice's row."""
    fee_due = fee_fixed_units - invoice.fee_fixed_taken_units
    for deposit in due[:DEPOSITS_PER_PAGE]:
        split = crediting.credit(
            catalogue, deposit, invoice.merchant_id, fee_ppm=invoice.fee_ppm, fee_fixed_due_units=max(0, fee_due)
        )
        fee_due -= split.fee_fixed_units if split else 0
    is_more = len(due) > DEPOSITS_PER_PAGE
    execute(
        "UPDATE invoices SET fee_fixed_taken_units = %s, is_credit_due = %s WHERE id = %s",
        (fee_fixed_units - fee_due, is_more, invoice.id),
    )
    return is_more


def _is_final(standing: _Standing, status: InvoiceStatus) -> bool:
    """A wrong_amount is final once all was sent back, until more confirms; one of strays alone, once none is left."""
    if status != "wrong_amount":
        return status in states.FINAL_STATUSES
    if standing.undecided_strays:
        return False
    if any(t.status == "confirmed" and not t.is_refunded for t in standing.confirmed):
        return False
    return not standing.confirmed or any(t.is_refunded for t in standing.confirmed)


def _write(catalogue: Catalogue, standing: _Standing, status: InvoiceStatus) -> None:
    """Write status and sums; nothing if nothing changed, so that updated_at means something."""
    invoice, quote, counted = standing.invoice, standing.quote, standing.counted
    units_min = standing.small_below if standing.hides_specks else 0
    network, txid = tallies.newest_counted(invoice.id, units_min=units_min) or ("", "")
    last = _last_to_count(standing)
    after = (
        status,
        _is_final(standing, status),
        quote.generation if quote else invoice.generation,
        quote.payer_units if quote else invoice.payer_units,
        quote.fee_fixed_units if quote else invoice.fee_fixed_units,
        standing.confirmed_units,
        sum(t.units for t in counted),
        last.height_max if last else None,
        last.depth_min if last else None,
        txid,
        _payer(catalogue.networks[network], standing.payer) if txid and standing.payer else "",
    )
    execute(
        "UPDATE invoices SET (status, is_final, generation, payer_units, fee_fixed_units, confirmed_units,"
        " detected_units, deposit_height, deposit_depth_min, txid, payer_address)"
        " = (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s),"
        " decided_at = CASE WHEN %s THEN COALESCE(decided_at, app_now()) END,"
        " accepted_units = CASE WHEN %s THEN accepted_units END,"
        # An invoice that was decided and is open again held its quote until now.
        " quoted_until = CASE WHEN status <> 'check' AND %s = 'check' THEN app_now() ELSE quoted_until END,"
        " updated_at = date_trunc('milliseconds', app_now()) WHERE id = %s"
        " AND (status, is_final, generation, payer_units, fee_fixed_units, confirmed_units, detected_units,"
        " deposit_height, deposit_depth_min, txid, payer_address)"
        " IS DISTINCT FROM (%s, %s, %s, %s, %s, %s, %s, %s::bigint, %s::integer, %s, %s)",
        (*after, *[status in states.DECIDED_STATUSES] * 2, status, invoice.id, *after),
    )


def _last_to_count(standing: _Standing) -> Tally | None:
    """Return the deposits that take the longest until they count; None without any."""
    needed = standing.invoice.required_confirmations
    return max(standing.counted, key=lambda t: t.height_max + max(needed, t.depth_min), default=None)


def _payer(network: Network, sender: str) -> str:
    """Return the address to which a refund can go; empty if the sender cannot be repaid.

    Minted tokens come from the zero address.
    """
    try:
        return display(network, parse(network, sender))
    except AddressError:
        return ""


def _emit(catalogue: Catalogue, before: InvoiceRow, status: InvoiceStatus, *, has_grown: bool) -> None:
    """Announce a new status, or more money in the same one."""
    is_new = status != before.status
    if status not in states.INVOICE_EVENTS or not (is_new or has_grown):
        return
    after = invoices.raise_revision(before.id)
    if is_new:
        count("sluice_invoices_ended", status)
        _log(after, status)
        events.note_expired(catalogue, after, before=before.status)
        if status in states.DECIDED_STATUSES:
            receipts.write_once(catalogue, after)
    tell(catalogue, after, states.INVOICE_EVENTS[status])


def _log(invoice: InvoiceRow, status: InvoiceStatus) -> None:
    if status in states.DECIDED_STATUSES:
        facts = {"invoice": str(invoice.id), "merchant": str(invoice.merchant_id), "status": status}
        then(lambda: log.info("invoice.paid", **facts))


def tell(catalogue: Catalogue, invoice: InvoiceRow, event: str) -> None:
    """Write an event of an invoice as it is now, in the caller's transaction."""
    outbox.emit_all([views.payment_event(catalogue, invoice, event)])

"""Records events of an invoice that no other row keeps, in the transaction that makes them; they never change.

Called by models.invoices.settlement and resolution, models.outcomes.reversals and actors.invoices; read by
models.invoices.timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Protocol
from uuid import UUID

import msgspec
from psycopg2.extras import Json

from core.catalogue.catalogue import Catalogue
from core.ids import uuid7
from core.invoices.states import InvoiceStatus
from core.texts.render import coin_text, iso_time
from models.db.base import execute, value
from models.db.table import BY_DATABASE, Table
from models.deposits.rows import Deposit
from models.invoices.rows import InvoiceRow

Kind = Literal["selected", "reorged", "expired", "resolved"]

# From where an invoice comes that ends because its time is over. One that expired is short by a late deposit alone.
_ENDINGS: Final[dict[InvoiceStatus, frozenset[InvoiceStatus]]] = {
    "expired": frozenset({"select", "check", "paid", "paid_over", "wrong_amount"}),
    "wrong_amount": frozenset({"select", "check", "paid", "paid_over"}),
}


class InvoiceEvent(Table, table="invoice_events"):
    """Something that happened to an invoice, with its detail as it is shown."""

    invoice_id: UUID
    id: UUID
    at: datetime = BY_DATABASE
    event: Kind
    detail: dict[str, Any]


def note(invoice_id: UUID, event: Kind, detail: dict[str, Any]) -> None:
    """Write an event in the caller's transaction, which has locked the invoice."""
    execute(
        "INSERT INTO invoice_events (invoice_id, id, event, detail) VALUES (%s, %s, %s, %s)",
        (invoice_id, uuid7(), event, Json(detail)),
    )


def note_reorged(catalogue: Catalogue, lost: Deposit) -> None:
    """Note that a reorg took a deposit, as it was before: its row may begin another life, and forgets this one's."""
    moments = {
        "detected_at": lost.detected_at,
        "confirmed_at": lost.confirmed_at,
        "credited_at": _credited_at(lost) if lost.status == "credited" else None,
    }
    detail = detail_of(catalogue, lost) | {"status": lost.status, "reason": "left_chain"}
    note(lost.owner_id, "reorged", detail | {name: iso_time(moment) for name, moment in moments.items() if moment})


def _credited_at(lost: Deposit) -> datetime | None:
    sql = "SELECT booked_at FROM ledger_transfers WHERE reference = %s ORDER BY leg LIMIT 1"
    credited_at: datetime | None = value(sql, (f"deposit:{lost.id}:{lost.round}:credit",))
    return credited_at


def note_expired(catalogue: Catalogue, invoice: InvoiceRow, *, before: InvoiceStatus) -> None:
    """Note that an invoice's time was over before it was paid, and what it lacks; nothing where it is not so."""
    if before not in _ENDINGS.get(invoice.status, ()):
        return
    note(invoice.id, "expired", _ending(catalogue, invoice))


def note_unpaid(catalogue: Catalogue, ended: Sequence[InvoiceRow]) -> None:
    """Note that the time of invoices was over before anything came; by one statement."""
    details = [msgspec.json.encode(_ending(catalogue, invoice)).decode() for invoice in ended]
    execute(
        "INSERT INTO invoice_events (invoice_id, id, event, detail)"
        " SELECT invoice_id, id, 'expired', detail::jsonb"
        " FROM unnest(%s::uuid[], %s::uuid[], %s::text[]) AS e (invoice_id, id, detail)",
        ([invoice.id for invoice in ended], [uuid7() for _ in ended], details),
    )


def _ending(catalogue: Catalogue, invoice: InvoiceRow) -> dict[str, str]:
    return {"status": invoice.status, "reason": _shortcoming(invoice)} | sums(catalogue, invoice)


def _shortcoming(invoice: InvoiceRow) -> str:
    if invoice.status == "expired":
        return "unpaid"
    return "short" if invoice.confirmed_units else "stray"


def sums(catalogue: Catalogue, invoice: InvoiceRow) -> dict[str, str]:
    """Return what an invoice asked for and what it has; nothing before a coin is chosen."""
    if invoice.pay_currency is None or invoice.payer_units is None:
        return {}
    units = {
        "payer_amount": invoice.payer_units,
        "payment_amount": invoice.confirmed_units,
        "amount_paid": invoice.detected_units,
        "amount_remaining": max(0, invoice.payer_units - invoice.detected_units),
    }
    shown = {name: coin_text(catalogue, invoice.pay_currency, number) for name, number in units.items()}
    return {"currency": invoice.pay_currency, **shown}


def note_accepted(catalogue: Catalogue, invoice: InvoiceRow) -> None:
    """Note that a merchant took what was paid for what was asked."""
    note(invoice.id, "resolved", {"action": "accept"} | sums(catalogue, invoice))


def note_strays_accepted(catalogue: Catalogue, invoice: InvoiceRow, strays: Iterable[Deposit]) -> None:
    """Note that a merchant took what came in other coins, or over other networks."""
    for stray in strays:
        note(invoice.id, "resolved", {"action": "accept"} | detail_of(catalogue, stray))


def note_sent_back(invoice_id: UUID, refunds: Iterable[Mapping[str, Any]], *, txid: str | None) -> None:
    """Note that a merchant sent back what was paid, or the strays of a transaction; by refunds as they are shown."""
    for refund in refunds:
        shown = {name: refund[name] for name in ("uuid", "amount", "currency", "network", "address")}
        note(invoice_id, "resolved", {"action": "refund", **shown} | ({"txid": txid} if txid else {}))


class Paid(Protocol):
    """A payment, with the fields that every event of it shows."""

    @property
    def txid(self) -> str: ...  # noqa: D102
    @property
    def currency(self) -> str: ...  # noqa: D102
    @property
    def network(self) -> str: ...  # noqa: D102
    @property
    def amount_units(self) -> int: ...  # noqa: D102
    @property
    def stray_reason(self) -> str | None: ...  # noqa: D102


class Seen(Paid, Protocol):
    """A deposit, with the fields that every event of it shows."""

    @property
    def block_height(self) -> int: ...  # noqa: D102


def sum_of(catalogue: Catalogue, paid: Paid) -> dict[str, Any]:
    """Return the details of a payment, whether or not a block has it."""
    return {
        "txid": paid.txid,
        "amount": coin_text(catalogue, paid.currency, paid.amount_units),
        "currency": paid.currency,
        "network": paid.network,
    } | ({"stray_reason": paid.stray_reason} if paid.stray_reason else {})


def detail_of(catalogue: Catalogue, deposit: Seen) -> dict[str, Any]:
    """Return the details that every event of a deposit shows."""
    return sum_of(catalogue, deposit) | {"block_height": deposit.block_height}

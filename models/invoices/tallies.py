"""Adds up an invoice's deposits, in PostgreSQL: a crowd of specks is not read one by one.

Called by models.invoices.settlement, which judges by these sums, and by actors.scan.record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.invoices.states import is_short
from models.db.base import one, rows_as


@dataclass(frozen=True, slots=True)
class Tally:
    """Deposits of an invoice that are alike in all that its judgement asks, as their number and sum."""

    stray_reason: str | None
    status: str
    has_refund: bool
    is_refunded: bool
    is_in_time: bool
    # At how many of the moments asked about, or before which, they were not seen yet.
    moments_before: int
    # Each is below a bound: the network's smallest amount.
    is_small: bool
    count: int
    units: int
    height_max: int
    # The confirmations that each takes at least, whatever its network asks for.
    depth_min: int
    # All senders between these two, by the alphabet.
    sender_first: str
    sender_last: str

    @property
    def is_counted(self) -> bool:
        """Return whether they are of the asset that the invoice asks for, and on the chain."""
        return self.stray_reason is None and self.status != "reversed"

    @property
    def is_confirmed(self) -> bool:
        """Return whether they count and are deep enough, credited or not."""
        return self.is_counted and self.status in {"confirmed", "credited"}

    @property
    def is_stray(self) -> bool:
        """Return whether they are of another asset or network. Dust does not count."""
        return self.stray_reason in {"asset", "network"}


def of_invoice(invoice_id: UUID, *, expires_at: datetime, moments: Sequence[datetime], small_below: int) -> list[Tally]:
    """Sum up an invoice's deposits, grouped by the sorted moments before which they were seen."""
    return rows_as(
        Tally,
        "SELECT d.stray_reason, d.status, d.refund_id IS NOT NULL AS has_refund,"
        " COALESCE(p.status = 'confirmed', false) AS is_refunded, d.seen_at <= %s AS is_in_time,"
        " width_bucket(d.seen_at, %s::timestamptz[]) AS moments_before, d.amount_units < %s AS is_small, count(*),"
        " sum(d.amount_units) AS units, max(d.block_height) AS height_max, d.depth_min,"
        ' min(d.sender COLLATE "C") AS sender_first, max(d.sender COLLATE "C") AS sender_last'
        " FROM deposits d LEFT JOIN payouts p ON p.id = d.refund_id WHERE d.owner_id = %s"
        " GROUP BY 1, 2, 3, 4, 5, 6, 7, d.depth_min",
        (expires_at, list(moments), small_below, invoice_id),
    )


def newest_counted(invoice_id: UUID, *, units_min: int) -> tuple[str, str] | None:
    """Return (network, txid) of the newest deposit of at least units_min that counts towards an invoice."""
    return one(
        "SELECT network, txid FROM deposits WHERE owner_id = %s AND stray_reason IS NULL AND status <> 'reversed'"
        " AND amount_units >= %s ORDER BY seen_at DESC, id DESC LIMIT 1",
        (invoice_id, units_min),
    )


def is_completed_by(invoice_id: UUID, units: int, *, target_units: int | None, waiting_units: int) -> bool:
    """Return True if a deposit of this sum completes an unpaid invoice: it is short without it, and not with it.

    That is so for one deposit at most. target_units: the quote in force. waiting_units: the sum of counting payments
    that no block has yet.
    """
    tally = one(
        "SELECT i.accuracy_ppm, (SELECT COALESCE(sum(d.amount_units), 0) FROM deposits d"
        " WHERE d.owner_id = i.id AND d.stray_reason IS NULL AND d.status <> 'reversed') FROM invoices i"
        " WHERE i.id = %s AND i.accepted_units IS NULL",
        (invoice_id,),
    )
    if tally is None or target_units is None:
        return False
    accuracy_ppm, counted_units = tally
    before_units = int(counted_units) + waiting_units
    return is_short(before_units, target_units, accuracy_ppm) and not is_short(
        before_units + units, target_units, accuracy_ppm
    )

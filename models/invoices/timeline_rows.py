"""Reads the payments, refunds and deliveries of an invoice, newest first. Called by models.invoices.timeline.

Read as tuples, since a timeline may have a thousand of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from core.payouts.states import PayoutStatus
from models.db.base import rows

_DEPOSITS: Final = """
SELECT d.txid, d.currency, d.network, d.amount_units, d.block_height, d.stray_reason, d.status, d.refund_id IS NOT NULL,
    d.seen_at, d.detected_at, d.confirmed_at IS NOT NULL, COALESCE(d.confirmed_at, GREATEST(c.moved_at, d.detected_at)),
    CASE WHEN d.status = 'credited' THEN (SELECT l.booked_at FROM ledger_transfers l
        WHERE l.reference = 'deposit:' || d.id || ':' || d.round || ':credit' ORDER BY l.leg LIMIT 1) END,
    CASE WHEN d.status = 'credited' THEN d.net_units END,
    CASE WHEN d.status = 'credited' THEN d.fee_units + d.fee_fixed_units END,
    COALESCE(c.height - d.block_height + 1, 0), COALESCE(c.halted_reason, '') <> '', q.reason,
    split_part(q.problem, ';', 1), d.depth_min
FROM deposits d LEFT JOIN chain_cursors c ON c.network = d.network
LEFT JOIN deposit_quorums q ON q.deposit_id = d.id AND q.round = d.round AND q.agreed_at IS NULL
WHERE d.owner_id = %s AND d.status <> 'reversed' ORDER BY d.seen_at DESC, d.id DESC LIMIT %s
"""
_REFUNDS: Final = """
SELECT p.id, p.status, p.amount_units, p.currency, p.network, p.address, p.txid, p.error, p.created_at, p.updated_at
FROM payouts p WHERE p.invoice_id = %s ORDER BY p.created_at DESC, p.id DESC LIMIT %s
"""
# A sighting that has become a deposit is shown with the deposit, in any of its lives.
_SIGHTINGS: Final = """
SELECT s.txid, s.currency, s.network, s.units, s.stray_reason, s.seen_at, s.soon_at, s.gone_at
FROM sightings s WHERE s.owner_id = %s AND NOT EXISTS (SELECT 1 FROM deposits d
    WHERE d.network = s.network AND d.txid = s.txid AND d.ordinal = s.ordinal)
ORDER BY s.seen_at DESC, s.txid, s.ordinal LIMIT %s
"""
_DELIVERIES: Final = """
SELECT w.id, w.event, w.status, w.attempts, w.last_status_code, w.last_error, w.created_at, w.delivered_at
FROM webhook_deliveries w WHERE w.object_id = %s ORDER BY w.created_at DESC, w.id DESC LIMIT %s
"""


class DepositSeen(NamedTuple):
    """A deposit on the chain, with the confirmations by the scan of its network."""

    txid: str
    currency: str
    network: str
    amount_units: int
    block_height: int
    stray_reason: str | None
    status: str
    has_refund: bool
    seen_at: datetime
    detected_at: datetime
    is_confirmed: bool
    # When it was confirmed; before that, the last block that was scanned.
    counted_at: datetime
    # Of what is credited alone, as what follows.
    credited_at: datetime | None
    net_units: int | None
    fee_units: int | None
    depth: int
    is_scan_halted: bool
    # Why one provider is not enough, and the others' answers so far; None if no second opinion is needed.
    doubt: str | None
    witnesses: str | None
    # The least number of confirmations, even if its network asks for fewer.
    depth_min: int


class Seen(NamedTuple):
    """A payment that no block has yet, or that none has ever had."""

    txid: str
    currency: str
    network: str
    amount_units: int
    stray_reason: str | None
    seen_at: datetime
    # By which it will be judged, if it is in a block in the end; None: by that block's time.
    soon_at: datetime | None
    gone_at: datetime | None


class Refund(NamedTuple):
    """A refund of the payment, or of a stray."""

    id: UUID
    status: PayoutStatus
    amount_units: int
    currency: str
    network: str
    address: str
    txid: str
    error: str | None
    created_at: datetime
    updated_at: datetime


class Delivery(NamedTuple):
    """A webhook of the payment."""

    id: UUID
    event: str
    status: str
    attempts: int
    last_status_code: int | None
    last_error: str | None
    created_at: datetime
    delivered_at: datetime | None


def deposits(invoice_id: UUID, *, limit: int) -> list[DepositSeen]:
    """Return the newest deposits that are on the chain."""
    return list(map(DepositSeen._make, rows(_DEPOSITS, (invoice_id, limit))))


def sightings(invoice_id: UUID, *, limit: int) -> list[Seen]:
    """Return the newest sightings that have become no deposit."""
    return list(map(Seen._make, rows(_SIGHTINGS, (invoice_id, limit))))


def refunds(invoice_id: UUID, *, limit: int) -> list[Refund]:
    """Return the newest refunds, strays' among them."""
    return list(map(Refund._make, rows(_REFUNDS, (invoice_id, limit))))


def deliveries(invoice_id: UUID, *, limit: int) -> list[Delivery]:
    """Return the newest webhooks."""
    return list(map(Delivery._make, rows(_DELIVERIES, (invoice_id, limit))))

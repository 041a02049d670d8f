"""Keeps payouts: rows, reads, and the one guarded change of status. Money is held before a row is written.

Written by whatever lets money leave (payouts, payout links, refunds) through insert(), moved on by
models.outcomes.decisions and models.outcomes.endings. Every change writes its event in the same transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
import structlog

from core.catalogue.catalogue import Catalogue
from core.invoices.states import check_transition
from core.payouts import ways_out
from core.payouts.states import FINAL_PAYOUTS, PAYOUT_TRANSITIONS, PayoutKind, PayoutStatus, WaitingFor, payout_event
from core.payouts.ways_out import Way
from models.db.after_commit import Bell, count, ring, then
from models.db.base import execute
from models.db.table import BY_DATABASE, Big, Numeric, Table, Units, derived
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, PAYOUT_HELD, SUSPENSE, Account, Transfer
from models.payouts import views as payout_views
from models.payouts.waiting import WAITING_FOR
from models.webhooks import outbox

log = structlog.get_logger()

FundedFrom = Literal["available", "suspense"]


class PayoutRow(Table, table="payouts p", joins="LEFT JOIN chain_cursors c ON c.network = p.network"):
    """A payout, with its confirmations by the scan of its network. The address is in the stored form."""

    id: UUID
    merchant_id: UUID
    order_id: str
    kind: PayoutKind
    funded_from: FundedFrom = "available"
    # Under which reference the ledger holds its money; insert() takes it where none holds it yet, as a link's does.
    hold_reference: str = ""
    invoice_id: UUID | None = None
    wallet_id: UUID | None = None
    currency: str
    network: str
    address: str
    memo: str = ""
    amount_units: Units
    fee_units: Units
    to_units: Units
    held_units: Units = BY_DATABASE
    is_fee_on_top: bool
    status: PayoutStatus
    source: str = "api"
    priority: str = "normal"
    is_approval_required: bool = False
    created_by: str
    url_callback: str | None = None
    request_id: str = ""
    from_currency: str | None = None
    from_units: Units | None = None
    rate: str | None = None
    # What one transfer of its coin was quoted to cost when it was made, in its coin and in the gas coin.
    quote_units: Units | None = BY_DATABASE
    quote_gas_units: Units | None = BY_DATABASE
    # The part of the fee that is kept although it failed.
    kept_units: Units = BY_DATABASE
    txid: str = BY_DATABASE
    block_height: Big | None = BY_DATABASE
    error: str | None = BY_DATABASE
    due_at: datetime = BY_DATABASE
    created_at: datetime = BY_DATABASE
    updated_at: datetime = BY_DATABASE
    refused_since: datetime | None = BY_DATABASE
    wait_reason: str = BY_DATABASE
    wait_kind: str = BY_DATABASE
    is_rest: bool = BY_DATABASE
    confirmations: int = derived(
        "CASE WHEN p.block_height IS NULL THEN 0 ELSE GREATEST(0, COALESCE(c.height - p.block_height + 1, 0)) END"
    )

    waiting_for: WaitingFor | None = derived(WAITING_FOR)

    @property
    def held_account(self) -> Account:
        """Return the account in which its money waits."""
        return Account(self.merchant_id, PAYOUT_HELD, self.currency)

    @property
    def way(self) -> Way:
        """Return the way out that it takes. Of refunds, those to other addresses than the payer's need an approval."""
        return ways_out.of(self.kind, is_elsewhere=self.is_approval_required)


class PayoutApproval(Table, table="payout_approvals"):
    """A principal's consent to a payout."""

    payout_id: UUID
    principal: str
    approved_at: datetime = BY_DATABASE


class PayoutSettlement(Table, table="payout_settlements"):
    """An operator's word on how a payout ended."""

    payout_id: UUID
    spend_id: UUID
    outcome: str
    left_units: Units
    arrived_units: Units
    lost_units: Numeric
    reason: str
    settled_by: str
    settled_at: datetime = BY_DATABASE


class SanctionVerdict(Table, table="sanction_verdicts"):
    """The answer of a coin's contract about an address."""

    network: str
    address: str
    is_sanctioned: bool
    checked_at: datetime = BY_DATABASE


def source_account(merchant_id: UUID, funded_from: FundedFrom, currency: str) -> Account:
    """Return the account that a payout's money comes from."""
    return Account(merchant_id, AVAILABLE if funded_from == "available" else SUSPENSE, currency)


def insert(catalogue: Catalogue, new: PayoutRow) -> PayoutRow:
    """Hold the money, write the row and its first event, all in the caller's transaction.

    Raises ledger.InsufficientFundsError, and a unique violation where the merchant's order_id has its payout: look it
    up before, under locks.wait_order().
    """
    held_units = new.to_units + new.fee_units
    reference = new.hold_reference or f"payout:{new.id}:hold"
    if not new.hold_reference:
        source = source_account(new.merchant_id, new.funded_from, new.currency)
        ledger.post(reference, [Transfer(source, Account(new.merchant_id, PAYOUT_HELD, new.currency), held_units)])
    values: dict[str, object] = vars(new) | {"hold_reference": reference, "held_units": held_units}
    execute(
        f"INSERT INTO payouts ({', '.join(values)}, quote_units, quote_gas_units)"
        f" SELECT {', '.join(['%s'] * len(values))}, max(units), max(gas_units) FROM network_fees"
        " WHERE (currency, network) = (%s, %s)",
        (*values.values(), new.currency, new.network),
    )
    row = _reread(new.id)
    _emit(catalogue, row)
    return row


def move(
    catalogue: Catalogue,
    before: PayoutRow,
    status: PayoutStatus,
    *,
    txid: str | None = None,
    block_height: int | None = None,
    error: str | None = None,
    kept_units: int = 0,
) -> PayoutRow | None:
    """Change a payout's status in the caller's transaction and write its event; None if another process was first.

    Books nothing: models.outcomes.endings ends payouts. Raises ForbiddenTransitionError.
    """
    check_transition(PAYOUT_TRANSITIONS, before.status, status)
    changed = execute(
        "UPDATE payouts SET status = %s, txid = COALESCE(%s, txid), block_height = COALESCE(%s, block_height),"
        " error = %s, kept_units = %s, updated_at = date_trunc('milliseconds', app_now())"
        " WHERE id = %s AND status = %s",
        (status, txid, block_height, error, kept_units, before.id, before.status),
    )
    if not changed:
        return None
    if status in FINAL_PAYOUTS:
        count("sluice_payouts_ended", status)
    row = _reread(before.id)
    _emit(catalogue, row)
    return row


def reprice(payout: PayoutRow, *, to_units: int) -> PayoutRow:
    """Set the amount that a locked payout brings, out of the same hold; the rest of the hold is the network's fee.

    For a payout whose transaction was found: the fee was another one when it was signed. The amount of a refund out of
    suspense is the amount that it brings.
    """
    execute(
        "UPDATE payouts SET to_units = %s, fee_units = held_units - %s,"
        " amount_units = CASE WHEN funded_from = 'suspense' THEN %s ELSE amount_units END WHERE id = %s",
        (to_units, to_units, to_units, payout.id),
    )
    return _reread(payout.id)


def note_inclusion(payout_id: UUID, *, txid: str, block_height: int | None) -> None:
    """Record the transaction and block that include a payout now; None takes it out of its block, as a reorg does."""
    execute(
        "UPDATE payouts SET txid = %s, block_height = %s, updated_at = date_trunc('milliseconds', app_now())"
        " WHERE id = %s AND (txid, block_height) IS DISTINCT FROM (%s, %s::bigint)",
        (txid, block_height, payout_id, txid, block_height),
    )


def find(merchant_id: UUID, payout_id: UUID) -> PayoutRow | None:
    """Return a payout of a merchant."""
    return PayoutRow.first("p.id = %s AND p.merchant_id = %s", (payout_id, merchant_id))


def find_by_order(merchant_id: UUID, order_id: str) -> PayoutRow | None:
    """Return a merchant's payout of an order_id."""
    return PayoutRow.first("p.merchant_id = %s AND p.order_id = %s", (merchant_id, order_id))


def look_up(merchant_id: UUID, *, uuid: str | None, order_id: str | None) -> PayoutRow | None:
    """Return a merchant's payout by uuid or else by order_id; the uuid has priority."""
    if uuid is not None:
        return find(merchant_id, UUID(uuid))
    return find_by_order(merchant_id, order_id) if order_id is not None else None


def lock(payout_id: UUID) -> PayoutRow | None:
    """Lock a payout until the transaction ends, and return it as it is then."""
    return PayoutRow.first("p.id = %s FOR UPDATE OF p", (payout_id,))


def _reread(payout_id: UUID) -> PayoutRow:
    row = PayoutRow.first("p.id = %s", (payout_id,))
    if row is None:
        raise LookupError(f"payout {payout_id} vanished while it was locked")
    return row


def _log(payout: PayoutRow) -> None:
    """Log a payout's new status, once the transaction is committed."""
    facts = {
        "payout": str(payout.id), "merchant": str(payout.merchant_id), "currency": payout.currency,
        "network": payout.network, "txid": payout.txid,
    }  # fmt: skip
    match payout.status:
        case "approved":
            then(lambda: log.info("payout.approved", **facts))
        case "broadcasting":
            then(lambda: log.info("payout.signed", **facts))
        case "sent":
            then(lambda: log.info("payout.sent", **facts))
        case "confirmed":
            then(lambda: log.info("payout.confirmed", **facts))
        case "failed":
            then(lambda: log.warning("payout.failed", **facts, problem=payout.error))


def _emit(catalogue: Catalogue, payout: PayoutRow) -> None:
    _log(payout)
    outbox.emit(
        payout.merchant_id,
        payout_event(payout.status),
        payout.id,
        msgspec.json.encode(payout_views.webhook(catalogue, payout)).decode(),
        url_callback=payout.url_callback,
        request_id=payout.request_id,
    )
    if payout.status == "approved":
        ring(Bell.BROADCAST, payout.network)

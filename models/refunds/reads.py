"""Reads the summary of a payment's refunds, for the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.catalogue.catalogue import Catalogue
from models.db.base import rows
from models.invoices.rows import InvoiceRow
from models.payouts.order_checks import step
from models.payouts.rows import PayoutRow
from models.refunds.rows import LIVE

SHOWN_MAX: Final = 1000

RefundedPart = Literal["none", "partial", "full"]


@dataclass(frozen=True, slots=True)
class RefundSummary:
    """Which part of a payment was refunded, and its refunds, oldest first; of very many, the newest."""

    part: RefundedPart
    refunds: list[PayoutRow]


def of_payment(catalogue: Catalogue, invoice: InvoiceRow) -> RefundSummary:
    """Return the summary of a payment's refunds; those of strays are listed, but do not count as a part of it."""
    refunds = PayoutRow.read("p.invoice_id = %s ORDER BY p.id DESC LIMIT %s", (invoice.id, SHOWN_MAX))[::-1]
    return RefundSummary(part=_part(catalogue, invoice) if refunds else "none", refunds=refunds)


def _part(catalogue: Catalogue, invoice: InvoiceRow) -> RefundedPart:
    """Compare the payment's deposits in its coin with the amounts of refunds, pending ones included.

    A deposit that a reorg took does not count; the part of it that was sent is still a refund.
    """
    if invoice.pay_currency is None:
        return "none"
    ((live, refunded_units, present_units),) = rows(
        "SELECT t.live, COALESCE(t.units, 0) + d.taken, d.present FROM"
        " (SELECT count(*) AS live, sum(p.amount_units) FILTER (WHERE p.kind = 'refund') AS units FROM payouts p"
        f"   WHERE p.invoice_id = %s AND p.kind IN ('refund', 'resolve') AND {LIVE}) t,"
        " (SELECT COALESCE(sum(amount_units), 0) AS present,"
        "   COALESCE(sum(amount_units) FILTER (WHERE refund_id IS NOT NULL), 0) AS taken FROM deposits"
        "   WHERE owner_id = %s AND stray_reason IS NULL AND status IN ('confirmed', 'credited')) d",
        (invoice.id, invoice.id),
    )
    if not live:
        return "none"
    return "full" if present_units - refunded_units < step(catalogue, invoice.pay_currency) else "partial"

"""Pages a merchant's invoices. Read by POST /v1/payment/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PaymentBadCursor, PaymentBadDate
from core.invoices.schemas import PaymentHistory
from models.db.paging import Page, created_between, cut_page, decode_cursor, read_end, read_moment
from models.db.query import descending
from models.invoices.rows import InvoiceRow


def read_page(merchant_id: UUID, wanted: PaymentHistory, *, limit: int) -> Page[InvoiceRow]:
    """Return one page. Raises payment.bad_cursor and payment.bad_date."""
    earliest = read_moment(wanted.date_from, error=PaymentBadDate) if wanted.date_from else None
    end = read_end(wanted.date_to, error=PaymentBadDate) if wanted.date_to else None
    invoices = InvoiceRow.select().where(
        InvoiceRow.merchant_id == merchant_id,
        not wanted.status or InvoiceRow.status == wanted.status,
        not wanted.currency or InvoiceRow.price_currency == wanted.currency,
        not wanted.network or InvoiceRow.network == wanted.network,
        not wanted.order_id or InvoiceRow.order_id == wanted.order_id,
        # Ids are UUIDv7: their order is that of creation.
        not wanted.cursor or InvoiceRow.id < decode_cursor(wanted.cursor, error=PaymentBadCursor),
        *created_between(InvoiceRow.id, InvoiceRow.created_at, earliest=earliest, end=end),
    )
    return cut_page(invoices.order_by(descending(InvoiceRow.id)).limit(limit + 1).all(), limit=limit)

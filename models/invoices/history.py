"""Pages a merchant's invoices. Read by POST /v1/payment/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PaymentBadCursor, PaymentBadDate
from core.invoices.schemas import PaymentHistory
from models.db.paging import Page, cut_page, decode_cursor, filtered, read_moment
from models.invoices.rows import InvoiceRow


def read_page(merchant_id: UUID, wanted: PaymentHistory, *, limit: int) -> Page[InvoiceRow]:
    """Return one page. Raises payment.bad_cursor and payment.bad_date."""
    where, values = filtered(
        {
            "i.merchant_id = %s": merchant_id,
            "i.status = %s": wanted.status,
            "i.price_currency = %s": wanted.currency,
            "i.network = %s": wanted.network,
            "i.order_id = %s": wanted.order_id,
            "i.created_at >= %s": wanted.date_from and read_moment(wanted.date_from, error=PaymentBadDate),
            "i.created_at < %s": wanted.date_to and read_moment(wanted.date_to, error=PaymentBadDate),
            # Ids are UUIDv7: their order is that of creation.
            "i.id < %s": wanted.cursor and decode_cursor(wanted.cursor, error=PaymentBadCursor),
        }
    )
    found = InvoiceRow.read(f"{where} ORDER BY i.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(found, limit=limit)

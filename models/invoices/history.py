"""Pages a merchant's invoices. Read by POST /v1/payment/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PaymentBadCursor, PaymentBadDate
from core.invoices.schemas import PaymentHistory
from models.db.paging import Page, created_between, cut_page, decode_cursor, filtered, read_end, read_moment
from models.invoices.rows import InvoiceRow


def read_page(merchant_id: UUID, wanted: PaymentHistory, *, limit: int) -> Page[InvoiceRow]:
    """Return one page. Raises payment.bad_cursor and payment.bad_date."""
    earliest = read_moment(wanted.date_from, error=PaymentBadDate) if wanted.date_from else None
    end = read_end(wanted.date_to, error=PaymentBadDate) if wanted.date_to else None
    where, values = filtered(
        created_between("i", earliest, end)
        | {
            "i.merchant_id = %s": merchant_id,
            "i.status = %s": wanted.status,
            "i.price_currency = %s": wanted.currency,
            "i.network = %s": wanted.network,
            "i.order_id = %s": wanted.order_id,
            # Ids are UUIDv7: their order is that of creation.
            "i.id < %s": wanted.cursor and decode_cursor(wanted.cursor, error=PaymentBadCursor),
        }
    )
    invoices = InvoiceRow.read(f"{where} ORDER BY i.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(invoices, limit=limit)

"""Pages a merchant's invoices. Read by POST /v1/payment/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PaymentBadCursor, PaymentBadDate
from core.invoices.schemas import PaymentHistory
from models.db.paging import Page, cut_page, decode_cursor, read_moment
from models.invoices.rows import InvoiceRow


def read_page(merchant_id: UUID, wanted: PaymentHistory, *, limit: int) -> Page[InvoiceRow]:
    """Return one page. Raises payment.bad_cursor and payment.bad_date."""
    filters: list[tuple[str, object]] = [("i.merchant_id = %s", merchant_id)]
    filters += [
        (f"i.{column} = %s", value)
        for column, value in (
            ("status", wanted.status),
            ("price_currency", wanted.currency),
            ("network", wanted.network),
            ("order_id", wanted.order_id),
        )
        if value
    ]
    if wanted.date_from:
        filters.append(("i.created_at >= %s", read_moment(wanted.date_from, error=PaymentBadDate)))
    if wanted.date_to:
        filters.append(("i.created_at < %s", read_moment(wanted.date_to, error=PaymentBadDate)))
    if wanted.cursor:
        # Ids are UUIDv7: their order is that of creation.
        filters.append(("i.id < %s", decode_cursor(wanted.cursor, error=PaymentBadCursor)))
    where = " AND ".join(condition for condition, _ in filters)
    values = [value for _, value in filters]
    found = InvoiceRow.read(f"{where} ORDER BY i.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(found, limit=limit)

"""Pages of a merchant's invoices. Read by POST /v1/payment/history."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from core.errors import PaymentBadCursor, PaymentBadDate
from models.base import rows
from models.invoices import READ, InvoiceRow
from models.paging import Page, cut_page, decode_cursor

if TYPE_CHECKING:
    from uuid import UUID

    from core.errors import DomainError
    from core.payment_schemas import PaymentHistory

# datetime.fromisoformat takes more than this; what it would guess is refused.
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# The clocks of the world are at most 14 hours from UTC, and PostgreSQL knows none that is 16 or more.
_OFFSET_MAX: Final = timedelta(hours=15, minutes=59)


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
        filters.append(("i.created_at >= %s", read_moment(wanted.date_from)))
    if wanted.date_to:
        filters.append(("i.created_at < %s", read_moment(wanted.date_to)))
    if wanted.cursor:
        # Ids are UUIDv7: their order is that of creation.
        filters.append(("i.id < %s", decode_cursor(wanted.cursor, error=PaymentBadCursor)))
    where = " AND ".join(condition for condition, _ in filters)
    values = [value for _, value in filters]
    found = [
        InvoiceRow(*row) for row in rows(f"{READ} WHERE {where} ORDER BY i.id DESC LIMIT %s", [*values, limit + 1])
    ]
    return cut_page(found, limit=limit)


def read_moment(text: str, *, error: type[DomainError] = PaymentBadDate) -> datetime:
    """Return an ISO 8601 date or moment in UTC, which it is in where it names no zone. Raises `error` for all else."""
    if _MOMENT.fullmatch(text) is None:
        raise error
    try:
        moment = datetime.fromisoformat(text)
        offset = moment.utcoffset() or timedelta()
        # In UTC it may be before the first year or after the last.
        in_utc = (moment - offset).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise error from None
    if abs(offset) > _OFFSET_MAX:
        raise error
    return in_utc

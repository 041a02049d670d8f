"""Pages a merchant's payouts. Read by POST /v1/payout/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PayoutBadCursor, PayoutBadDate
from core.payouts.schemas import PayoutHistory
from core.payouts.states import SHOWN
from models.db.paging import Page, cut_page, decode_cursor, read_moment
from models.payouts.rows import PayoutRow


def read_page(merchant_id: UUID, wanted: PayoutHistory, *, limit: int) -> Page[PayoutRow]:
    """Return one page. Raises payout.bad_cursor and payout.bad_date."""
    filters: list[tuple[str, object]] = [("p.merchant_id = %s", merchant_id)]
    filters += [
        (f"p.{column} = %s", value)
        for column, value in (
            ("currency", wanted.currency),
            ("network", wanted.network),
            ("order_id", wanted.order_id),
        )
        if value
    ]
    if wanted.status:
        filters.append(("p.status = ANY(%s)", [status for status, word in SHOWN.items() if word == wanted.status]))
    if wanted.date_from:
        filters.append(("p.created_at >= %s", read_moment(wanted.date_from, error=PayoutBadDate)))
    if wanted.date_to:
        filters.append(("p.created_at < %s", read_moment(wanted.date_to, error=PayoutBadDate)))
    if wanted.cursor:
        # Ids are UUIDv7: their order is that of creation.
        filters.append(("p.id < %s", decode_cursor(wanted.cursor, error=PayoutBadCursor)))
    where = " AND ".join(condition for condition, _ in filters)
    values = [value for _, value in filters]
    found = PayoutRow.read(f"{where} ORDER BY p.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(found, limit=limit)

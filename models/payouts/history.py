"""Pages a merchant's payouts. Read by POST /v1/payout/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PayoutBadCursor, PayoutBadDate
from core.payouts.schemas import PayoutHistory
from core.payouts.states import SHOWN
from models.db.paging import Page, created_between, cut_page, decode_cursor, filtered, read_end, read_moment
from models.payouts.rows import PayoutRow


def read_page(merchant_id: UUID, wanted: PayoutHistory, *, limit: int) -> Page[PayoutRow]:
    """Return one page. Raises payout.bad_cursor and payout.bad_date."""
    earliest = read_moment(wanted.date_from, error=PayoutBadDate) if wanted.date_from else None
    end = read_end(wanted.date_to, error=PayoutBadDate) if wanted.date_to else None
    where, values = filtered(
        created_between("p", earliest, end)
        | {
            "p.merchant_id = %s": merchant_id,
            "p.currency = %s": wanted.currency,
            "p.network = %s": wanted.network,
            "p.order_id = %s": wanted.order_id,
            "p.status IN %s": wanted.status and tuple(state for state, word in SHOWN.items() if word == wanted.status),
            # Ids are UUIDv7: their order is that of creation.
            "p.id < %s": wanted.cursor and decode_cursor(wanted.cursor, error=PayoutBadCursor),
        }
    )
    payouts = PayoutRow.read(f"{where} ORDER BY p.id DESC LIMIT %s", [*values, limit + 1])
    return cut_page(payouts, limit=limit)

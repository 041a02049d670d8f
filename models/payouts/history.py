"""Pages a merchant's payouts. Read by POST /v1/payout/history."""

from __future__ import annotations

from uuid import UUID

from core.errors import PayoutBadCursor, PayoutBadDate
from core.payouts.schemas import PayoutHistory
from core.payouts.states import SHOWN
from models.db.paging import Page, created_between, cut_page, decode_cursor, read_end, read_moment
from models.db.query import among, descending
from models.payouts.rows import PayoutRow


def read_page(merchant_id: UUID, wanted: PayoutHistory, *, limit: int) -> Page[PayoutRow]:
    """Return one page. Raises payout.bad_cursor and payout.bad_date."""
    earliest = read_moment(wanted.date_from, error=PayoutBadDate) if wanted.date_from else None
    end = read_end(wanted.date_to, error=PayoutBadDate) if wanted.date_to else None
    states = [state for state, word in SHOWN.items() if word == wanted.status]
    payouts = PayoutRow.select().where(
        PayoutRow.merchant_id == merchant_id,
        not wanted.currency or PayoutRow.currency == wanted.currency,
        not wanted.network or PayoutRow.network == wanted.network,
        not wanted.order_id or PayoutRow.order_id == wanted.order_id,
        not wanted.status or among(PayoutRow.status, states),
        # Ids are UUIDv7: their order is that of creation.
        not wanted.cursor or PayoutRow.id < decode_cursor(wanted.cursor, error=PayoutBadCursor),
        *created_between(PayoutRow.id, PayoutRow.created_at, earliest=earliest, end=end),
    )
    return cut_page(payouts.order_by(descending(PayoutRow.id)).limit(limit + 1).all(), limit=limit)

"""Gives shares that waited long enough to their recipients, and tells what those received.

Called by actors.merchants.shares. A share is due once its hold is over and its credit is mature, while its merchant is
not frozen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from models.db.base import execute, rows, rows_as, transaction
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, DEBT, HOLD, Account, Transfer
from models.ledger.rows import SplitEarnings, SplitShare

# Out of a frozen merchant's hold nothing goes to others: by rules of his it would leave as well as by payouts.
_DUE: Final = (
    "s.left_units > 0 AND s.is_mature AND s.release_at <= app_now() AND s.merchant_id::text <> ALL (ARRAY("
    "SELECT f.name FROM payout_freezes f WHERE f.scope = 'merchant'))"
    " AND NOT EXISTS (SELECT 1 FROM payout_freezes f WHERE f.scope = 'all')"
)


class Receipt(NamedTuple):
    """Who is to receive shares, and of which coin."""

    recipient_id: UUID
    currency: str


def due(limit: int, *, but_for: Collection[str] = ()) -> list[Receipt]:
    """Return who is to receive the longest due shares, so many shares looked at.

    but_for: networks whose deposits wait, as a refund of them may be missing here.
    """
    waits = "true"
    if but_for:
        waits = "NOT EXISTS (SELECT 1 FROM deposits d WHERE d.id = s.deposit_id AND d.network = ANY(%(but_for)s))"
    return rows_as(
        Receipt,
        "SELECT DISTINCT recipient_id, currency FROM (SELECT s.recipient_id, s.currency FROM split_shares s"
        f" WHERE {_DUE} AND {waits} ORDER BY s.release_at, s.id LIMIT %(limit)s) longest",
        {"but_for": list(but_for), "limit": limit},
    )


def release(receipt: Receipt, *, limit: int) -> int:
    """Give a recipient some of its due shares, its debt first; return how many. Those in other hands are passed by."""
    with transaction():
        found = SplitShare.read(
            f"(s.recipient_id, s.currency) = (%s, %s) AND {_DUE} ORDER BY s.release_at, s.id LIMIT %s"
            " FOR UPDATE OF s SKIP LOCKED",
            (*receipt, limit),
        )
        if found:
            _book(receipt, found)
    return len(found)


def _book(receipt: Receipt, released: Sequence[SplitShare]) -> None:
    available, debt = (Account(receipt.recipient_id, kind, receipt.currency) for kind in (AVAILABLE, DEBT))
    owed = max(0, ledger.lock_debt(*receipt))
    entries = []
    for share in released:
        repaid = min(owed, share.left_units)
        owed -= repaid
        hold = Account(share.merchant_id, HOLD, share.currency)
        # What is released is never the same twice: it only grows.
        reference = f"split:{share.id}:{share.released_units}:release"
        entries.append(
            (reference, [Transfer(hold, debt, repaid), Transfer(hold, available, share.left_units - repaid)])
        )
    ledger.post_all(entries)
    execute(
        "UPDATE split_shares SET released_units = released_units + left_units, left_units = 0 WHERE id = ANY(%s)",
        ([share.id for share in released],),
    )
    SplitEarnings(**receipt._asdict(), units=sum(share.left_units for share in released)).write(
        "ON CONFLICT (recipient_id, currency) DO UPDATE SET units = e.units + EXCLUDED.units"
    )


def earnings(recipient_id: UUID) -> dict[str, int]:
    """Return what a merchant received as a recipient so far, in the ledger's units by coin."""
    return dict(
        rows("SELECT currency, units FROM split_earnings WHERE recipient_id = %s ORDER BY currency", (recipient_id,))
    )

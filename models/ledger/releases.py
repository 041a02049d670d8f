"""Releases due shares to their recipients, and returns the recipients' earnings.

Called by actors.merchants.shares. A share is due once its hold is over and its credit is mature, while its merchant is
not frozen and owes nothing. A share returns to its merchant if the key that set its rule, or the one
that co-signed it, is revoked by then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from models.db import fair
from models.db.base import execute, rows, transaction
from models.db.revocation import VOUCHED, revoked
from models.ledger import ledger
from models.ledger.ledger import AVAILABLE, DEBT, HOLD, Account, Transfer
from models.ledger.rows import SplitEarnings, SplitShare

# Out of the hold of a frozen merchant, or of a debtor, nothing goes to others: its rules would lead around both.
_WAITING: Final = "s.left_units > 0 AND s.is_mature"
_IS_DUE: Final = "s.release_at <= (SELECT app_now())"
_NOT_STOPPED: Final = (
    "NOT EXISTS (SELECT 1 FROM payout_freezes f"
    " WHERE f.scope = 'all' OR (f.scope = 'merchant' AND f.name = {merchant}::text))"
    f" AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.holder = {{merchant}} AND a.kind = '{DEBT}'"
    f" AND {ledger.OWED} > 0)"
)
# A lost key's rule must not outlive the key, unless other keys have made the same rule.
_RECEIVER: Final = (
    f"CASE WHEN {revoked('s.set_by', 's.cosigned_by')}"
    " AND NOT EXISTS (SELECT 1 FROM split_rules r WHERE (r.merchant_id, r.recipient_id, r.percent_ppm)"
    f" = (s.merchant_id, s.recipient_id, s.percent_ppm) AND NOT r.is_pending AND {VOUCHED})"
    " THEN s.merchant_id ELSE s.recipient_id END"
)
_NOT_DOUBTED: Final = "NOT EXISTS (SELECT 1 FROM deposits d WHERE d.id = s.deposit_id AND d.network = ANY(%(but_for)s))"


class Receipt(NamedTuple):
    """Who is to receive shares, and of which coin. Shares of recipient_id's own hold return to it."""

    recipient_id: UUID
    currency: str


def due(limit: int, *, but_for: Collection[str] = ()) -> dict[Receipt, list[UUID]]:
    """Return due shares by recipient and coin: a turn of each merchant who shares before the second of any.

    but_for: networks whose deposits wait, as a refund of them may be missing here.
    """
    by_receipt: dict[Receipt, list[UUID]] = {}
    for share_id, *receipt in rows(
        f"SELECT s.id, {_RECEIVER}, s.currency FROM split_shares s WHERE s.id = ANY(ARRAY({_due(but_for)}))"
        " ORDER BY s.release_at, s.id",
        {"limit": limit, "but_for": list(but_for)},
    ):
        by_receipt.setdefault(Receipt(*receipt), []).append(share_id)
    return by_receipt


def _due(but_for: Collection[str]) -> str:
    """Return the statement that picks due shares, merchant by merchant: a stopped merchant's crowd costs one look."""
    return fair.fair(
        "split_shares s",
        _WAITING,
        due=f"{_IS_DUE} AND {_NOT_DOUBTED}" if but_for else _IS_DUE,
        order="s.release_at, s.id",
        since="release_at",
        whose=_NOT_STOPPED.format(merchant="walk.merchant_id"),
    )


def release(receipt: Receipt, share_ids: Sequence[UUID]) -> int:
    """Give a recipient those of its shares that are still due, its debt first; return how many were given.

    Skips shares that another transaction has locked.
    """
    with transaction():
        shares = SplitShare.read(
            f"s.id = ANY(%s) AND {_WAITING} AND {_IS_DUE} AND {_NOT_STOPPED.format(merchant='s.merchant_id')}"
            f" AND ({_RECEIVER}, s.currency) = (%s, %s) ORDER BY s.release_at, s.id FOR UPDATE OF s SKIP LOCKED",
            (list(share_ids), *receipt),
        )
        if shares:
            _book(receipt, shares)
    return len(shares)


def _book(receipt: Receipt, released: Sequence[SplitShare]) -> None:
    available, debt = (Account(receipt.recipient_id, kind, receipt.currency) for kind in (AVAILABLE, DEBT))
    owed = max(0, ledger.lock_debt(*receipt))
    entries = []
    for share in released:
        repaid = min(owed, share.left_units)
        owed -= repaid
        hold = Account(share.merchant_id, HOLD, share.currency)
        # The released sum differs every time, since it only grows.
        reference = f"split:{share.id}:{share.released_units + share.returned_units}:release"
        entries.append(
            (reference, [Transfer(hold, debt, repaid), Transfer(hold, available, share.left_units - repaid)])
        )
    ledger.post_all(entries)
    earned = [share for share in released if share.merchant_id != receipt.recipient_id]
    returned = [share for share in released if share.merchant_id == receipt.recipient_id]
    for place, moved in (("released_units", earned), ("returned_units", returned)):
        if moved:
            execute(
                f"UPDATE split_shares SET {place} = {place} + left_units, left_units = 0 WHERE id = ANY(%s)",
                ([share.id for share in moved],),
            )
    if earned:
        SplitEarnings(**receipt._asdict(), units=sum(share.left_units for share in earned)).write(
            "ON CONFLICT (recipient_id, currency) DO UPDATE SET units = e.units + EXCLUDED.units"
        )


def earnings(recipient_id: UUID) -> dict[str, int]:
    """Return what a merchant received as a recipient so far, in the ledger's units by coin."""
    received = SplitEarnings.select(SplitEarnings.currency, SplitEarnings.units)
    return dict(received.where(SplitEarnings.recipient_id == recipient_id).order_by(SplitEarnings.currency).all())

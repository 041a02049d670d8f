"""Says why a payout waits, as merchants read it: a payout's waiting_for.

The signer's obstacles are stored with their reason by write(). Freezes, debts, approvals and co-signatures are read
from their own tables, so that they show at once and end by themselves. Read with models.payouts.rows and
models.payout_links.rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.payouts.states import WaitingFor
from core.payouts.ways_out import TO_PAYER_KINDS
from models.db.base import execute
from models.ledger import ledger
from models.ledger.ledger import DEBT
from models.payouts.freezes import RECOVERY

REASON_CHARS_MAX: Final = 200

_FROZEN: Final = (
    "FROM payout_freezes f WHERE (f.scope, f.name) IN (('all', ''), ('network', p.network),"
    " ('merchant', p.merchant_id::text), ('coin', p.currency || ':' || p.network))"
)
# As freezes.is_refused(): only a debt in its own coin stops a refund to the payer.
_IN_DEBT: Final = (
    f"SELECT 1 FROM accounts a WHERE a.holder = p.merchant_id AND a.kind = '{DEBT}'"
    f" AND (p.is_approval_required OR p.kind NOT IN {TO_PAYER_KINDS} OR a.currency = p.currency)"
    f" AND {ledger.OWED} > 0"
)

WAITING_FOR: Final = (
    "CASE WHEN p.status = 'pending' THEN 'approval' WHEN p.status = 'awaiting_cosign' THEN 'cosign'"
    " WHEN p.status = 'approved' THEN CASE"
    f"   WHEN EXISTS (SELECT 1 {_FROZEN} AND f.frozen_by <> '{RECOVERY}') THEN 'freeze'"
    f"   WHEN EXISTS (SELECT 1 {_FROZEN}) THEN 'network'"
    f"   WHEN EXISTS ({_IN_DEBT}) THEN 'debt'"
    "   WHEN p.wait_reason <> '' THEN COALESCE(NULLIF(p.wait_kind, ''), 'network') END"
    " WHEN p.status IN ('broadcasting', 'sent') AND p.wait_reason <> ''"
    "   THEN COALESCE(NULLIF(p.wait_kind, ''), 'network') END"
)
"""What the payout `p` waits for, NULL for nothing."""


def write(
    where: str, values: Sequence[object], *, reason: str, waiting_for: WaitingFor, pause_s: float | None = None
) -> int:
    """Write why payouts wait, where they do not say so yet; return the number of rows written.

    where: a condition on `payouts`, with its values. pause_s: until they are tried again, None leaves that as it is.
    An empty reason clears both.
    """
    kind = waiting_for if reason else ""
    due = "" if pause_s is None else "due_at = app_now() + make_interval(secs => %s), "
    paused = [] if pause_s is None else [pause_s]
    unsaid = " AND (wait_reason, wait_kind) IS DISTINCT FROM (%s, %s)" if pause_s is None else ""
    reason_and_kind = (reason[:REASON_CHARS_MAX], kind)
    return execute(
        f"UPDATE payouts SET {due}wait_reason = %s, wait_kind = %s WHERE {where}{unsaid}",
        (*paused, *reason_and_kind, *values, *(reason_and_kind if unsaid else ())),
    )

"""Finds withdrawal rules whose balances have reached their threshold, in an endless walk, and records the outcomes.

Called by actors.payouts.ticks and actors.payouts.withdrawing. Balances change with every sale, at no extra cost for the
sale: each step checks the balances of some rules, even if few have changed.
"""

from __future__ import annotations

from typing import Final

from core.ids import NIL
from models.db.base import execute, is_true, one, rows_as
from models.db.query import number
from models.db.revocation import VOUCHED
from models.payouts.withdrawals import Key, WithdrawalRule

# Rules that one step checks.
PAGE: Final = 1_000
# After a payout ended unpaid, the next is made after this time; the time doubles with each that ends unpaid.
AGAIN_AFTER_S: Final = 600
AGAIN_AFTER_MAX_S: Final = 86_400

_START: Final = Key(NIL, "")
# By the index that allows one of them, whose condition this is.
_OPEN: Final = (
    "EXISTS (SELECT 1 FROM payouts p WHERE p.merchant_id = r.merchant_id AND p.currency = r.currency"
    " AND p.kind = 'autowithdraw' AND p.status IN ('pending', 'awaiting_cosign', 'approved', 'broadcasting', 'sent'))"
)
_IS_READY: Final = f"r.is_enabled AND NOT r.is_pending AND {VOUCHED} AND r.due_at <= (SELECT app_now()) AND NOT {_OPEN}"
_REACHED: Final = (
    "WITH page AS MATERIALIZED (SELECT * FROM withdrawal_rules WHERE (merchant_id, currency) > (%s, %s)"
    "  ORDER BY merchant_id, currency LIMIT %s)"
    " SELECT r.merchant_id, r.currency FROM page r"
    " JOIN accounts a ON (a.holder, a.kind, a.currency, a.network) = (r.merchant_id, 'available', r.currency, '')"
    " JOIN balances b ON b.account_id = a.id"
    f" WHERE b.units >= r.threshold_units AND {_IS_READY} ORDER BY r.merchant_id, r.currency LIMIT %s"
)


def next_reached(*, limit: int) -> list[Key]:
    """Return the rules of the next page whose balances have reached their threshold, and store the walk's position.

    Call it inside a transaction while no other such step runs. After the last rule the walk begins again.
    """
    at = _stands()
    page_end = one(
        "SELECT merchant_id, currency FROM withdrawal_rules WHERE (merchant_id, currency) > (%s, %s)"
        " ORDER BY merchant_id, currency OFFSET %s LIMIT 1",
        (*at, PAGE - 1),
    )
    reached = rows_as(Key, _REACHED, (*at, PAGE, limit))
    behind = reached[-1] if len(reached) == limit else Key(*page_end) if page_end else _START
    if behind != at:
        execute("UPDATE withdrawal_walk SET merchant_id = %s, currency = %s", tuple(behind))
    return reached


def _stands() -> Key:
    """Return the rule behind which the walk goes on."""
    [at] = rows_as(Key, "SELECT merchant_id, currency FROM withdrawal_walk")
    return at


def take(key: Key) -> WithdrawalRule | None:
    """Lock a rule that is ready to send; None if it no longer is, or another process has locked it."""
    return WithdrawalRule.first(
        f"r.merchant_id = %s AND r.currency = %s AND {_IS_READY} FOR UPDATE OF r SKIP LOCKED", tuple(key)
    )


def note_made(rule: WithdrawalRule, payout_id: object) -> None:
    """Note the payout that a locked rule has made."""
    execute(
        "UPDATE withdrawal_rules SET payout_id = %s, wait_reason = '' WHERE merchant_id = %s AND currency = %s",
        (payout_id, *rule.key),
    )


def note_end(rule: WithdrawalRule) -> bool:
    """Note how the last payout of a locked rule ended, which it has; False if the rule has to wait for that.

    A recipient that no payout reaches is tried ever more rarely, and so is a merchant who takes each one back.
    """
    return is_true(
        "UPDATE withdrawal_rules r SET payout_id = NULL, failures = e.failures, due_at = e.due_at,"
        " wait_reason = e.wait_reason FROM ("
        "  SELECT 0 AS failures, app_now() AS due_at, '' AS wait_reason FROM payouts"
        "   WHERE id = %(payout)s AND status = 'confirmed'"
        "  UNION ALL SELECT %(failures)s + 1, updated_at"
        "    + make_interval(secs => LEAST(%(most)s, %(least)s * 2.0 ^ %(failures)s)), 'payout.' || status"
        "   FROM payouts WHERE id = %(payout)s AND status IN ('failed', 'cancelled')) e"
        " WHERE r.merchant_id = %(merchant)s AND r.currency = %(currency)s RETURNING r.due_at <= app_now()",
        {
            "payout": rule.payout_id,
            "failures": rule.failures,
            "least": AGAIN_AFTER_S,
            "most": AGAIN_AFTER_MAX_S,
            "merchant": rule.merchant_id,
            "currency": rule.currency,
        },
    )


def wait(key: Key, *, seconds: int, reason: str) -> bool:
    """Set the next check of a rule to this many seconds from now; return True if the reason of its wait is new."""
    return is_true(
        "UPDATE withdrawal_rules r SET due_at = app_now() + make_interval(secs => %s), wait_reason = %s"
        " FROM withdrawal_rules before WHERE (before.merchant_id, before.currency) = (r.merchant_id, r.currency)"
        " AND r.merchant_id = %s AND r.currency = %s RETURNING before.wait_reason <> r.wait_reason",
        (seconds, reason, *key),
    )


def waiting() -> list[tuple[str, int]]:
    """Return why rules wait whose balances have come so far, and how many do for each reason."""
    reason = WithdrawalRule.wait_reason
    return WithdrawalRule.select(reason, number()).where(reason != "").group_by(reason).all()

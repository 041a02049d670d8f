"""Creates payouts by withdrawal rules, once enough is available. Notified by the scheduler."""

from __future__ import annotations

from typing import Final

from actors.context import Context, context
from actors.payouts import withdrawing
from actors.queue.broker import doorbell, ring
from actors.queue.isolated import isolated
from models.db import locks
from models.db.base import transaction
from models.payouts import withdrawal_walk
from models.payouts.withdrawals import Key

DUE_PER_STEP: Final = 50
FAULT: Final = "fault"


@doorbell(queue="maintenance")
def withdraw_balances() -> None:
    """Create payouts for some due withdrawal rules; notify itself again after a full step."""
    ctx = context()
    due = _reached()
    made = [_withdrawn(ctx, key) for key in due]
    if len(due) == DUE_PER_STEP and any(made):
        ring("withdraw_balances")


def _reached() -> list[Key]:
    """Return the next due withdrawal rules; none while another process reads them."""
    with transaction():
        if not locks.try_turn("withdrawals"):
            return []
        return withdrawal_walk.next_reached(limit=DUE_PER_STEP)


def _withdrawn(ctx: Context, key: Key) -> bool:
    """Create one rule's payout; a rule that breaks is tried again no sooner than a refused one."""
    made = isolated(key.merchant_id, withdrawing.withdraw, ctx, key)
    if made is None:
        with transaction():
            withdrawal_walk.wait(key, seconds=withdrawing.WAIT_S, reason=FAULT)
    return bool(made)

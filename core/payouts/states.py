"""Declares the statuses of a payout: their transitions, the words for merchants, and the events.

Tables; models.payouts.rows acts on them.
Source: API reference, "Payout status".
"""

from __future__ import annotations

from typing import Final, Literal

PayoutStatus = Literal[
    "pending", "awaiting_cosign", "approved", "broadcasting", "sent", "confirmed", "failed", "cancelled"
]
# The reason why a payout waits, as merchants see it.
WaitingFor = Literal["liquidity", "limit", "freeze", "fee", "cosign", "approval", "network", "debt"]
PayoutKind = Literal["payout", "cheque", "refund", "resolve", "stray", "wallet_refund", "autowithdraw"]

# From each status to those that it may reach. A payout that a reorg takes out of its block returns to sent; one whose
# spend is provably dead before it was included returns to approved, and is sent again.
PAYOUT_TRANSITIONS: Final[dict[PayoutStatus, frozenset[PayoutStatus]]] = {
    "pending": frozenset({"awaiting_cosign", "approved", "cancelled"}),
    "awaiting_cosign": frozenset({"approved", "cancelled"}),
    "approved": frozenset({"broadcasting", "failed", "cancelled"}),
    "broadcasting": frozenset({"sent", "approved", "confirmed", "failed"}),
    "sent": frozenset({"confirmed", "approved", "failed"}),
    "confirmed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}

# The word for each in API answers and webhook bodies.
SHOWN: Final[dict[PayoutStatus, str]] = {
    "pending": "check",
    "awaiting_cosign": "awaiting_cosign",
    "approved": "process",
    "broadcasting": "process",
    "sent": "process",
    "confirmed": "paid",
    "failed": "fail",
    "cancelled": "cancel",
}

FINAL_PAYOUTS: Final[frozenset[PayoutStatus]] = frozenset({"confirmed", "failed", "cancelled"})
# Payouts that wait for a decision.
UNDECIDED_PAYOUTS: Final[frozenset[PayoutStatus]] = frozenset({"pending", "awaiting_cosign"})
# Payouts without a signed attempt that can still take effect.
UNSIGNED_PAYOUTS: Final[frozenset[PayoutStatus]] = UNDECIDED_PAYOUTS | {"approved"}


def payout_event(status: PayoutStatus) -> str:
    """Return the name of the event that reaching a status emits."""
    return f"payout.{status}"

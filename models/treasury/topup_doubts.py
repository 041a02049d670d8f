"""Doubts top-ups that only one provider reported, by the policy and budget of models.deposits.witnesses.

A booked top-up is the gateway's own coin, which conversions sell. A doubted one is not booked.
"""

from __future__ import annotations

from typing import Final

from models.db.base import execute, rows_as, touched
from models.deposits import witnesses
from models.deposits.rows import Booked
from models.deposits.witnesses import Policy, Reason
from models.treasury.rows import Topup

OPEN: Final = "(t.doubted_for IS NOT NULL AND t.agreed_at IS NULL)"
"""Condition about t, a top-up's row: it waits for a second opinion."""


def guard(new: Topup, *, usd_cents: int | None, policy: Policy) -> None:
    """Decide whether a top-up that was just recorded needs a second opinion; call inside the same transaction."""
    reason = witnesses.reason(new.network, usd_cents, policy)
    if reason is not None:
        doubt(new.network, new.txid, new.ordinal, reason)


def doubt(network: str, txid: str, ordinal: str, reason: Reason = "missing") -> bool:
    """Ask for witnesses of a pending top-up; False if that was done, or it is too late."""
    return touched(
        "UPDATE treasury_topups SET doubted_for = %s, asked_at = app_now(), next_attempt_at = app_now()"
        " WHERE network = %s AND txid = %s AND ordinal = %s AND status = 'pending' AND doubted_for IS NULL",
        (reason, network, txid, ordinal),
    )


def due(network: str, *, limit: int) -> list[Topup]:
    """Return top-ups whose witnesses are to be asked now, those that waited longest first."""
    return Topup.read(
        f"t.network = %s AND t.status = 'pending' AND {OPEN} AND t.next_attempt_at <= app_now()"
        " ORDER BY t.next_attempt_at LIMIT %s",
        (network, limit),
    )


def agree(asked: Topup) -> bool:
    """Record that other providers report the same for this life of the top-up, in the same block."""
    return touched(
        "UPDATE treasury_topups SET agreed_at = app_now(), attempts = attempts + 1, problem = ''"
        " WHERE id = %s AND round = %s AND block_hash = %s AND status = 'pending' AND agreed_at IS NULL",
        (asked.id, asked.round, asked.block_hash),
    )


def put_off(asked: Topup, problem: str) -> None:
    """Ask again later, each time after twice as long."""
    execute(
        f"UPDATE treasury_topups SET {witnesses.PUT_OFF} WHERE id = %s AND round = %s AND agreed_at IS NULL",
        (problem, asked.id, asked.round),
    )


def in_block(network: str, height: int, block_hash: str) -> list[Booked]:
    """Return a block's top-ups that its transactions and logs show and that are not booked yet."""
    return rows_as(
        Booked,
        "SELECT txid, ordinal, currency, units, address FROM treasury_topups"
        " WHERE network = %s AND block_height = %s AND block_hash = %s AND status = 'pending' AND txid <> ''",
        (network, height, block_hash),
    )

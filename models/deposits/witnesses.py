"""Decides which deposits need a second opinion, and records the other providers' answers.

The requirement is a row written in the transaction that records the deposit; deposits.confirm() refuses while it is
open. actors.scan.witnesses asks the providers, outside of any transaction, and records their answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from models.db.base import execute, is_true, rows, touched
from models.deposits import probes
from models.deposits.rows import IS_DENIED, Deposit

Reason = Literal["amount", "unpriced", "hourly", "missing", "hidden"]

RETRY_S: Final = 5
RETRY_MAX_S: Final = 300
PROBLEM_MAX: Final = 300
OUTVOTED: Final = "the others agree on another transfer in its place"
DENIED: Final = "the others deny it"
PUT_OFF: Final = (
    f"attempts = attempts + 1, problem = left(%s, {PROBLEM_MAX}), next_attempt_at ="
    f" app_now() + make_interval(secs => LEAST({RETRY_S} * 2 ^ LEAST(attempts, 16), {RETRY_MAX_S}))"
)
# Kept for an operator's inquiry; the rule itself reads only the current hour.
HOURS_KEPT: Final = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """From which value on a single deposit needs a second opinion, and how much smaller ones may make in an hour."""

    threshold_usd_cents: int
    hourly_usd_cents: int


def guard(deposit: Deposit, *, usd_cents: int | None, policy: Policy) -> None:
    """Decide whether a deposit that was just recorded needs a second opinion; call inside the same transaction.

    A hidden one always does, and uses up no allowance: no transaction proves it.
    """
    why = "hidden" if probes.is_hidden(deposit) else reason(deposit.network, usd_cents, policy)
    if why is not None:
        _ask(deposit.network, deposit.txid, deposit.ordinal, why)


def reason(network: str, usd_cents: int | None, policy: Policy) -> Reason | None:
    """Return why what came needs a second opinion, None if it does not; that uses up the hour's budget."""
    if usd_cents is None:
        return "unpriced"
    if usd_cents >= policy.threshold_usd_cents:
        return "amount"
    return None if _spend(network, usd_cents, policy.hourly_usd_cents) else "hourly"


def _spend(network: str, usd_cents: int, limit: int) -> bool:
    """Take from what the hour has left for deposits without witnesses; False if it is too little."""
    return usd_cents <= limit and touched(
        "INSERT INTO unwitnessed_credits AS u (network, hour, usd_cents)"
        " VALUES (%s, date_trunc('hour', app_now()), %s) ON CONFLICT (network, hour)"
        " DO UPDATE SET usd_cents = u.usd_cents + EXCLUDED.usd_cents WHERE u.usd_cents + EXCLUDED.usd_cents <= %s",
        (network, usd_cents, limit),
    )


def _ask(network: str, txid: str, ordinal: str, why: Reason) -> bool:
    return touched(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason)"
        " SELECT id, round, network, %s FROM deposits"
        " WHERE network = %s AND txid = %s AND ordinal = %s AND status = 'pending' ON CONFLICT DO NOTHING",
        (why, network, txid, ordinal),
    )


def doubt(network: str, txid: str, ordinal: str) -> bool:
    """Ask for witnesses of a pending deposit that a second reading did not show, or whose block is not proved."""
    return _ask(network, txid, ordinal, "missing")


def due(network: str, *, confirmations: int, limit: int) -> list[Deposit]:
    """Return deposits whose witnesses are to be asked now: of each address the one that waited longest, then the next.

    So an address with many deposits does not delay the others. Each is asked about once when it is recorded, and again
    from its last confirmation on: it cannot count sooner.
    """
    return Deposit.rows_of(
        f"{Deposit.SELECT} JOIN deposit_quorums q ON q.deposit_id = d.id AND q.round = d.round"
        " WHERE q.network = %s AND q.agreed_at IS NULL AND d.status = 'pending' AND q.next_attempt_at <= app_now()"
        " AND (q.attempts = 0 OR d.block_height <= c.height - GREATEST(%s, d.depth_min) + 1)"
        " ORDER BY row_number() OVER (PARTITION BY d.address ORDER BY q.next_attempt_at, d.id), q.next_attempt_at"
        " LIMIT %s",
        (network, confirmations, limit),
    )


def agree(asked: Deposit) -> bool:
    """Record that other providers report the same for this life of the deposit, in the same block."""
    return touched(
        "UPDATE deposit_quorums q SET agreed_at = app_now(), attempts = attempts + 1, problem = '' FROM deposits d"
        " WHERE q.deposit_id = %s AND q.round = %s AND q.agreed_at IS NULL"
        " AND d.id = q.deposit_id AND d.round = q.round AND d.block_hash = %s",
        (asked.id, asked.round, asked.block_hash),
    )


def date_later(asked: Deposit, *, height: int, block_hash: str) -> None:
    """Move an agreed deposit to the block after which its coin was witnessed; it keeps the time of its own block.

    If the coin leaves the chain, the deposit does too, and it matures from there. Call inside the transaction of
    agree().
    """
    execute(
        "UPDATE deposits SET block_height = %s, block_hash = %s"
        " WHERE id = %s AND round = %s AND block_hash = %s AND status = 'pending'",
        (height, block_hash, asked.id, asked.round, asked.block_hash),
    )


def reject(asked: Deposit) -> bool:
    """Keep this very life of a deposit from being agreed on; False if it was, or if it is over.

    Call inside the transaction that takes it back.
    """
    return touched(
        f"UPDATE deposit_quorums q SET attempts = attempts + 1, problem = '{OUTVOTED}' FROM deposits d"
        " WHERE q.deposit_id = %s AND q.round = %s AND q.agreed_at IS NULL"
        " AND d.id = q.deposit_id AND d.round = q.round AND d.block_hash = %s AND d.status = 'pending'",
        (asked.id, asked.round, asked.block_hash),
    )


def deny(asked: Deposit) -> None:
    """Record that providers deny this life of a deposit; call inside the transaction that takes it back."""
    execute(
        "UPDATE deposit_quorums SET is_denied = true, problem = %s WHERE deposit_id = %s AND round = %s",
        (DENIED, asked.id, asked.round),
    )


def is_denied(network: str, txid: str, ordinal: str, *, block_hash: str) -> bool:
    """Return True if a transfer was recorded from this block last, and providers denied that."""
    return is_true(
        "SELECT 1 FROM deposits d WHERE d.network = %s AND d.txid = %s AND d.ordinal = %s AND d.block_hash = %s"
        f" AND {IS_DENIED}",
        (network, txid, ordinal, block_hash),
    )


def await_depth(asked: Deposit) -> None:
    """Ask again once the scan has come to the last confirmation of a deposit, whose transaction is agreed on."""
    execute(
        "UPDATE deposit_quorums SET attempts = 1, problem = '', next_attempt_at = app_now()"
        " WHERE deposit_id = %s AND round = %s AND agreed_at IS NULL",
        (asked.id, asked.round),
    )


def put_off(asked: Deposit, problem: str) -> None:
    """Ask again later, each time after twice as long."""
    execute(
        f"UPDATE deposit_quorums SET {PUT_OFF} WHERE deposit_id = %s AND round = %s AND agreed_at IS NULL",
        (problem, asked.id, asked.round),
    )


def forget_hours() -> None:
    """Drop what was spent in hours long past."""
    execute(
        "DELETE FROM unwitnessed_credits WHERE hour < app_now() - make_interval(hours => %s)",
        (HOURS_KEPT,),
    )


def waiting() -> list[tuple[str, int, int]]:
    """Return (network, deposits that wait for a second opinion, seconds since the first was asked for)."""
    return rows(
        "SELECT q.network, count(*), extract(epoch FROM app_now() - min(q.asked_at))::bigint FROM deposit_quorums q"
        " JOIN deposits d ON d.id = q.deposit_id AND d.round = q.round AND d.status = 'pending'"
        " WHERE q.agreed_at IS NULL GROUP BY q.network"
    )

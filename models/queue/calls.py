"""Records calls: queue messages whose senders wait. Each takes effect once or never, and its caller learns which.

A call's row is the first thing its transaction writes. A caller that stops waiting writes a tombstone under the same
id: the first of the two rows decides, independent of any clock. Called by actors.queue.caller on both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast
from uuid import UUID, uuid5

import psycopg2

from core.errors import GatewayBusy, IdempotencyInProgress, IdempotencyKeyReused
from models.db import locks
from models.db.base import (
    LOCK_NOT_AVAILABLE,
    QUERY_CANCELED,
    StoreUnavailableError,
    end_step_at,
    execute,
    in_transaction,
    is_true,
    one,
    pgcode,
    value,
)
from models.queue.rows import CallRecord

# The longest that a call's transaction may wait for a lock, run a statement, or lie idle.
STEP_TIMEOUT_MS: Final = 2_000
# A tombstone waits for the call's own transaction, which its timeouts end.
ABANDON_ATTEMPTS: Final = 3
ABANDON_PAUSE_S: Final = 0.1
# A call's transaction may hold its row for this long after its life: a last statement or pause, and its rollback.
GRACE_S: Final = 2.5 * STEP_TIMEOUT_MS / 1000
KEPT_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class Asker:
    """The author of an order for money to leave: the merchant, the key or person that signed, and the request."""

    merchant_id: UUID
    principal: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """A call's author, and the keys by which a repetition is recognised. The fingerprint: of method, path, body."""

    call_id: UUID
    merchant_id: UUID | None
    request_id: str
    idem_key: str | None
    fingerprint: bytes
    # The signing principal: an API key's public id, or `user:…` for a person in the cabinet.
    principal_id: str | None = None
    # The answer is shown once: its row is kept without it.
    is_secret: bool = False
    # A second key, of exactly this request: an Idempotency-Key is not signed, so an attacker who captured the request
    # may change it.
    signature_key: str | None = None
    # When its caller stops waiting, by this process's monotonic clock; None for a call without an end.
    ends_at: float | None = None

    def by_signature(self) -> CallInfo | None:
        """Return this call keyed by its signature, for a second row next to its own; None without a signature."""
        if self.signature_key is None:
            return None
        return replace(self, call_id=uuid5(self.call_id, "signature"), idem_key=self.signature_key, signature_key=None)

    def merchant(self) -> UUID:
        """Return the call's merchant. Only actors of signed endpoints may ask."""
        if self.merchant_id is None:
            raise ValueError("a signed call has a merchant")
        return self.merchant_id

    def principal(self) -> str:
        """Return the call's principal. Only actors of signed endpoints may ask."""
        if self.principal_id is None:
            raise ValueError("a signed call has a principal")
        return self.principal_id

    def asker(self) -> Asker:
        """Return the call's author, for an order. Only actors of signed endpoints may ask."""
        return Asker(self.merchant(), self.principal(), self.request_id)


class ReplayedError(Exception):
    """The call, or an earlier one with its key, has succeeded already; `response` is its answer."""

    def __init__(self, response: str | None, *, by_key: bool) -> None:
        super().__init__("answered before")
        self.response = response
        self.by_key = by_key


class AbandonedError(Exception):
    """The caller was already answered that this call never takes effect."""


class UndecidedError(Exception):
    """PostgreSQL could not say whether the call took effect, nor keep it from doing so."""


_REFUSALS: Final[Mapping[str, Callable[[str | None], Exception]]] = {
    "replayed": lambda response: ReplayedError(response, by_key=True),
    "repeated": lambda response: ReplayedError(response, by_key=False),
    "abandoned": lambda _: AbandonedError(),
    "in_progress": lambda _: IdempotencyInProgress(),
    "key_reused": lambda _: IdempotencyKeyReused(),
}


def begin(info: CallInfo) -> None:
    """Write the call's row, first in the transaction of its effect, and set short timeouts for that transaction.

    The transaction ends with the call's life: past that its next statement raises StepOverdueError, and PostgreSQL
    itself refuses its COMMIT.

    Raises ReplayedError, AbandonedError, IdempotencyInProgress (at once: no call waits for a key) and
    IdempotencyKeyReused. An error that leaves the transaction rolls the row back, and so frees the key.

    With a signature_key, a call is a repetition if either key is known. If only the other key was, the answer is stored
    under the signature's too, provided that the caller still commits.
    """
    if not in_transaction():
        raise RuntimeError("a call's row belongs to the transaction of its effect")
    twin = info.by_signature()
    if twin is None:
        _begin(info)
        return
    _begin(twin)
    try:
        _begin(info)
    except ReplayedError as replay:
        if replay.response is not None:
            finish(twin.call_id, replay.response)
        raise


def _begin(info: CallInfo) -> None:
    key = info.idem_key if info.merchant_id is not None else None
    row = one(
        "SELECT outcome, response FROM begin_call(%s, %s, %s, %s, %s, %s)",
        (info.call_id, info.merchant_id, key, info.fingerprint, STEP_TIMEOUT_MS, _life_left_ms(info)),
    )
    outcome, response = row or ("abandoned", None)
    if outcome != "new":
        raise _REFUSALS[outcome](response)


def _life_left_ms(info: CallInfo) -> int | None:
    """Return a call's remaining milliseconds and limit its transaction to them. Raises AbandonedError without any."""
    if info.ends_at is None:
        return None
    left_ms = int((info.ends_at - time.monotonic()) * 1000)
    if left_ms <= 0:
        raise AbandonedError
    end_step_at(info.ends_at)
    return left_ms


def take_turn(merchant_id: UUID) -> None:
    """Lock the merchant's long calls until the transaction ends. Raises GatewayBusy at once if another has the lock.

    Call it after begin(): a call delivered twice waits there for its first delivery, and must not be refused for it.
    """
    if not locks.try_turn(long_call(merchant_id)):
        raise GatewayBusy("Another long call of this merchant is under way.")


def long_call(merchant_id: UUID) -> str:
    """Return the name of the lock by which a merchant's long calls run one at a time."""
    return f"long_call:{merchant_id}"


def finish(call_id: UUID, response: str) -> None:
    """Store a call's answer, in the transaction in which begin() opened it. Not for answers with a secret."""
    execute("UPDATE calls SET response = %s WHERE call_id = %s", (response, call_id))


def forget(*call_ids: UUID) -> None:
    """Remove the rows of calls without a waiting caller, in the transaction that wrote them."""
    execute("DELETE FROM calls WHERE call_id = ANY(%s)", (list(call_ids),))


def abandon(info: CallInfo, *, life_left_s: float = 0.0) -> str | None:
    """Prevent a call from ever taking effect, or return its answer if it has.

    Waits for the call's open transaction, which ends with the call's life. None if it will never take effect, or if its
    answer was a secret that is shown once. Raises UndecidedError.
    """
    patient_until, losses = time.monotonic() + life_left_s + GRACE_S, 0
    while True:
        try:
            return _tombstone(info)
        except (StoreUnavailableError, psycopg2.Error) as error:
            is_locked = pgcode(error) in {LOCK_NOT_AVAILABLE, QUERY_CANCELED}
            losses += not is_locked
            is_final = not is_locked and not isinstance(error, StoreUnavailableError)
            if is_final or losses == ABANDON_ATTEMPTS or (is_locked and time.monotonic() >= patient_until):
                raise UndecidedError(str(error)) from error
            time.sleep(ABANDON_PAUSE_S)


def _tombstone(info: CallInfo) -> str | None:
    tombstone = CallRecord(
        call_id=info.call_id, merchant_id=info.merchant_id, fingerprint=info.fingerprint, state="abandoned"
    )
    if tombstone.write("ON CONFLICT (call_id) DO NOTHING"):
        return None
    sql = "SELECT response FROM calls WHERE call_id = %s AND state = 'done'"
    return cast("str | None", value(sql, (info.call_id,)))


def is_abandoned(call_id: UUID) -> bool:
    """Return True if a call's caller has stopped waiting; asked between the transactions of a call with several."""
    return is_true("SELECT 1 FROM calls WHERE call_id = %s AND state = 'abandoned'", (call_id,))


def prune(*, limit: int) -> int:
    """Forget some calls older than KEPT_DAYS; return how many."""
    return execute(
        "DELETE FROM calls WHERE call_id = ANY (ARRAY(SELECT call_id FROM calls"
        " WHERE created_at < app_now() - make_interval(days => %s) ORDER BY created_at LIMIT %s))",
        (KEPT_DAYS, limit),
    )

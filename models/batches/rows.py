"""Keeps batches: rows, reads, and the round over the merchants that share the workers.

Written by actors.batches.calls (create) and actors.batches.ticks (lease, complete); models.batches.items has the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from core.batches.schemas import BatchKind, OnError
from core.errors import BatchTooManyOpen
from core.ids import NIL
from models.batches import items as batch_items
from models.batches.items import Leased
from models.db import fair
from models.db.after_commit import Bell, ring
from models.db.base import column, execute, one, rows_as, transaction
from models.db.table import BY_DATABASE, Table

# Merchants that one round passes by; the next goes on behind them.
WALK_MAX: Final = 64
# Open batches of one merchant that one turn reads, oldest first; further ones cost nothing. Batches with nothing due
# have items due again within minutes, since every pause and every lease ends.
LOOKED_AT_MAX: Final = 16
# Of these, the number from which it takes items: a later one may have items if the oldest has none.
BATCHES_A_TURN: Final = 4
# Days for which a completed batch can be read. The objects that it created stay.
KEPT_DAYS: Final = 30


_COUNTS: Final = (
    "count(*) FILTER (WHERE i.status = 'success') AS succeeded, count(*) FILTER (WHERE i.status = 'error') AS failed"
)


class BatchRow(Table, table="batches b"):
    """A batch. How its items ended is written down when it is completed, and counted until then by find()."""

    id: UUID
    merchant_id: UUID
    kind: BatchKind
    on_error: OnError
    status: str = BY_DATABASE
    count: int
    created_by: str
    request_id: str
    created_at: datetime = BY_DATABASE
    completed_at: datetime | None = BY_DATABASE
    succeeded: int | None = BY_DATABASE
    failed: int | None = BY_DATABASE

    @property
    def is_in_order(self) -> bool:
        """Return whether items run one after the other, and the first failure ends the batch."""
        return self.on_error == "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedRound:
    """Items leased in one round, the merchants it passed and their batches without a pending item.

    The next round goes on behind the last of the merchants.
    """

    items: tuple[Leased, ...]
    merchants: tuple[UUID, ...]
    handled: tuple[UUID, ...]

    @property
    def batches(self) -> list[UUID]:
        """Return the batches that may be complete after this round."""
        return list(dict.fromkeys([*self.handled, *(item.of.id for item in self.items)]))


def check_open(merchant_id: UUID, *, count: int, merchant_max: int, gateway_max: int) -> None:
    """Raise batch.too_many_open if `count` more items would exceed a cap on items of batches that are not completed.

    Nothing is locked: batches taken at the same moment may exceed a cap by one batch each.
    """
    mine, all_open = one(
        "SELECT COALESCE(sum(b.count) FILTER (WHERE b.merchant_id = %s), 0), COALESCE(sum(b.count), 0)"
        " FROM batches b WHERE b.status <> 'completed'",
        (merchant_id,),
    ) or (0, 0)
    if mine + count > merchant_max or all_open + count > gateway_max:
        raise BatchTooManyOpen


def create(new: BatchRow, items: Sequence[str], order_ids: Sequence[str]) -> None:
    """Write a batch with all its items, in the caller's transaction and two statements, however many they are."""
    new.write()
    execute(
        "INSERT INTO batch_items (batch_id, position, order_id, body) SELECT %s, place - 1, order_id, body"
        " FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS item (order_id, body, place)",
        (new.id, list(order_ids), list(items)),
    )
    ring(Bell.RUN_BATCHES)


def find(merchant_id: UUID, batch_id: UUID) -> BatchRow | None:
    """Return a merchant's batch; another merchant's is as absent as a missing one."""
    batch = BatchRow.first("b.id = %s AND b.merchant_id = %s", (batch_id, merchant_id))
    if batch is None or batch.succeeded is not None:
        return batch
    succeeded, failed = one(f"SELECT {_COUNTS} FROM batch_items i WHERE i.batch_id = %s", (batch_id,)) or (0, 0)
    return batch.but(succeeded=succeeded, failed=failed)


def lease_turn(*, limit: int, after: UUID) -> LeasedRound:
    """Lease due items for one worker, in the caller's transaction: shared out among the merchants who have some.

    The round begins behind the merchant `after` and goes once around. A merchant who is alone gets all the places.
    """
    walked = _walk(after)
    due: dict[UUID, list[UUID]] = {look.merchant_id: [] for look in walked}
    for look in walked:
        if look.is_due and len(due[look.merchant_id]) < BATCHES_A_TURN:
            due[look.merchant_id].append(look.batch_id)
    waiting = sum(1 for batches in due.values() if batches)
    items: list[Leased] = []
    passed: list[UUID] = []
    for merchant_id, batches in due.items():
        passed.append(merchant_id)
        if batches:
            # The remaining places are shared among the merchants to come, so that each gets one while there are any.
            items += _lease_of(batches, max(1, (limit - len(items)) // waiting))
            waiting -= 1
        if len(items) >= limit:
            break
    execute(
        "UPDATE batches SET status = 'processing' WHERE id = ANY(%s::uuid[]) AND status = 'pending'",
        (list({item.of.id for item in items}),),
    )
    handled = tuple(look.batch_id for look in walked if not look.is_pending)
    return LeasedRound(items=tuple(items), merchants=tuple(passed), handled=handled)


class _Look(NamedTuple):
    """An open batch in a merchant's turn: whether items are pending, and whether one can be leased."""

    merchant_id: UUID
    batch_id: UUID
    is_pending: bool
    is_due: bool


_FIRST: Final = (
    "SELECT i.due_at <= (SELECT app_now()) FROM batch_items i WHERE i.batch_id = b.id AND i.status = 'pending'"
)
_WALK: Final = (
    fair.walk("batches b", "b.status <> 'completed'", after="%s", most="%s")
    + " SELECT b.merchant_id, b.id AS batch_id, first.is_due IS NOT NULL AS is_pending,"
    " CASE WHEN first.is_due IS NULL THEN false"
    # The items of a batch that runs in order wait for its first one, leased or paused.
    " WHEN first.is_due OR b.on_error <> 'continue' THEN first.is_due"
    f" ELSE EXISTS ({_FIRST} AND i.due_at <= (SELECT app_now())) END AS is_due"
    " FROM walk CROSS JOIN LATERAL (SELECT * FROM batches o WHERE o.merchant_id = walk.merchant_id"
    f"  AND o.status <> 'completed' ORDER BY o.id LIMIT {LOOKED_AT_MAX}) b"
    f" LEFT JOIN LATERAL ({_FIRST} ORDER BY i.position LIMIT 1) first (is_due) ON true"
    " ORDER BY walk.number, b.id"
)


def _walk(after: UUID) -> list[_Look]:
    """Return the oldest open batches of merchants, in the order of their turns."""
    behind = rows_as(_Look, _WALK, (after, WALK_MAX))
    seen = {look.merchant_id for look in behind}
    if len(seen) == WALK_MAX:
        return behind
    again = rows_as(_Look, _WALK, (NIL, WALK_MAX - len(seen)))
    return [*behind, *(look for look in again if look.merchant_id not in seen)]


def _lease_of(due: Sequence[UUID], share: int) -> list[Leased]:
    """Lease a merchant's share, of its batches that have due items."""
    items: list[Leased] = []
    for batch in BatchRow.read("b.id = ANY(%s::uuid[]) ORDER BY b.id", (list(due),)):
        if len(items) >= share:
            break
        items += batch_items.lease(batch, limit=share - len(items))
    return items


def complete(ids: Sequence[UUID]) -> None:
    """Complete those of some batches whose items are all handled; a statement by itself.

    The worker that handles a batch's last item calls this after its commit. If it dies before, a later round finds
    the batch among its merchant's oldest.
    """
    if not ids:
        return
    execute(
        "UPDATE batches b SET status = 'completed', completed_at = date_trunc('milliseconds', app_now()),"
        # Counted once none is left: this is asked after every few items.
        f" (succeeded, failed) = (SELECT {_COUNTS} FROM batch_items i WHERE i.batch_id = b.id)"
        " WHERE b.id = ANY(%s::uuid[]) AND b.status <> 'completed'"
        " AND NOT EXISTS (SELECT FROM batch_items i WHERE i.batch_id = b.id AND i.status = 'pending')",
        (list(ids),),
    )


def prune(*, limit: int) -> int:
    """Forget some batches that were completed KEPT_DAYS ago, with their items; return how many."""
    with transaction():
        over = column(
            "SELECT id FROM batches WHERE status = 'completed' AND completed_at < app_now() - make_interval(days => %s)"
            " ORDER BY completed_at LIMIT %s FOR UPDATE SKIP LOCKED",
            (KEPT_DAYS, limit),
        )
        execute("DELETE FROM batch_items WHERE batch_id = ANY(%s::uuid[])", (over,))
        return execute("DELETE FROM batches WHERE id = ANY(%s::uuid[])", (over,))

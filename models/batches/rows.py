"""Keeps batches: rows, reads, and the round over the merchants that share the workers.

Written by actors.batches.calls (create) and actors.batches.ticks (lease, complete); what one item does is in
models.batches.items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from core.batches.schemas import BatchKind, OnError
from core.ids import NIL
from models.batches import items as batch_items
from models.batches.items import Leased
from models.db import turns
from models.db.base import column, execute, one, transaction
from models.db.bells import Bell, ring
from models.db.table import BY_DATABASE, Table

# Merchants that one round passes by; the next goes on behind them.
WALK_MAX: Final = 64
# Batches of one merchant that one turn takes items of: another may have items where the oldest has none to give.
BATCHES_A_TURN: Final = 4
# How long a completed batch can be read. What it made stays.
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
    """What one round leased, and the merchants it passed: the next goes on behind the last of them."""

    items: tuple[Leased, ...]
    merchants: tuple[UUID, ...]


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
    found = BatchRow.first("b.id = %s AND b.merchant_id = %s", (batch_id, merchant_id))
    if found is None or found.succeeded is not None:
        return found
    succeeded, failed = one(f"SELECT {_COUNTS} FROM batch_items i WHERE i.batch_id = %s", (batch_id,)) or (0, 0)
    return found.but(succeeded=succeeded, failed=failed)


def lease_turn(*, limit: int, after: UUID) -> LeasedRound:
    """Lease due items for one worker, in the caller's transaction: shared out among the merchants who have some.

    The round begins behind the merchant `after` and goes once around. A merchant who is alone gets all the places.
    """
    merchants = _merchants_with_work(after)
    found: list[Leased] = []
    passed: list[UUID] = []
    for number, merchant_id in enumerate(merchants):
        # What is left, shared among those still to come: nobody is passed by while there is a place.
        share = max(1, (limit - len(found)) // (len(merchants) - number))
        found += _lease_of(merchant_id, share)
        passed.append(merchant_id)
        if len(found) >= limit:
            break
    execute(
        "UPDATE batches SET status = 'processing' WHERE id = ANY(%s::uuid[]) AND status = 'pending'",
        (list({item.of.id for item in found}),),
    )
    return LeasedRound(items=tuple(found), merchants=tuple(passed))


_WALK: Final = (
    turns.walk("batches b", "b.status <> 'completed'", after="%s", most="%s")
    + " SELECT merchant_id FROM walk WHERE merchant_id IS NOT NULL ORDER BY number"
)


def _merchants_with_work(after: UUID) -> list[UUID]:
    """Return merchants with open batches, in the order of their turns."""
    behind = column(_WALK, (after, WALK_MAX))
    if len(behind) == WALK_MAX:
        return behind
    again = column(_WALK, (NIL, WALK_MAX - len(behind)))
    return list(dict.fromkeys([*behind, *again]))


def _lease_of(merchant_id: UUID, share: int) -> list[Leased]:
    """Lease a merchant's share, of its oldest batches that have due items."""
    open_batches = BatchRow.read(
        "b.merchant_id = %s AND b.status <> 'completed' AND EXISTS (SELECT FROM batch_items i"
        "  WHERE i.batch_id = b.id AND i.status = 'pending' AND i.due_at <= (SELECT app_now()))"
        # Those that run in order and wait would take the places of those that do not.
        " AND (b.on_error = 'continue' OR NOT EXISTS (SELECT FROM batch_items i"
        "  WHERE i.batch_id = b.id AND i.status = 'pending' AND i.due_at > (SELECT app_now())))"
        " ORDER BY b.id LIMIT %s",
        (merchant_id, BATCHES_A_TURN),
    )
    found: list[Leased] = []
    for batch in open_batches:
        if len(found) >= share:
            break
        found += batch_items.lease(batch, limit=share - len(found))
    return found


def complete(merchants: Sequence[UUID]) -> None:
    """Complete those of the merchants' batches whose items are all handled; a statement by itself.

    Whoever handles a batch's last item comes by here after its commit, and if it dies before, the next round does.
    """
    execute(
        "UPDATE batches b SET status = 'completed', completed_at = date_trunc('milliseconds', app_now()),"
        # Counted once none is left: this is asked after every few items.
        f" (succeeded, failed) = (SELECT {_COUNTS} FROM batch_items i WHERE i.batch_id = b.id)"
        " WHERE b.merchant_id = ANY(%s::uuid[]) AND b.status <> 'completed'"
        " AND NOT EXISTS (SELECT FROM batch_items i WHERE i.batch_id = b.id AND i.status = 'pending')",
        (list(merchants),),
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

"""Leases items of batches, begins them, and ends each once, as a success or an error. Called by actors.batches.ticks.

An item's effect, its result and its status are one transaction, so that a crash repeats nothing: lock() opens it to the
holder of the lease, succeed() ends it. A refused item is rolled back and recorded by fail().
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from core.errors import BatchSkipped
from core.ids import uuid7
from models.db.base import column, execute, in_transaction, is_true, rows, touched, value
from models.db.table import Table

if TYPE_CHECKING:
    from models.batches.rows import BatchRow

# A dead worker's items are leased again after this. begin() renews it: no item takes as long.
LEASE_S: Final = 30


class LeaseLostError(Exception):
    """The item is another worker's by now, or done. Nothing of what was done for it may be committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """An item that this worker may do."""

    of: BatchRow
    position: int
    body: str
    # How often it was put off before.
    put_off: int
    lease: UUID

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key of this lease of the item."""
        return self.of.id, self.position, self.lease


class ItemRow(Table, table="batch_items i"):
    """An item as stored. Its body is empty once it has ended."""

    batch_id: UUID
    position: int
    order_id: str
    body: str
    status: str
    result: str | None
    error_code: str | None
    error_message: str | None
    # How often it was begun without an end, and put off.
    begun: int
    put_off: int
    lease: UUID | None
    due_at: datetime


_MINE: Final = "batch_id = %s AND position = %s AND lease = %s AND status = 'pending'"
_MINE_OF: Final = "batch_id = %s AND position = ANY(%s::integer[]) AND lease = %s AND status = 'pending'"
_DUE: Final = "i.batch_id = %s AND i.status = 'pending' AND i.due_at <= (SELECT app_now())"


def page(batch_id: UUID, *, limit: int, offset: int) -> list[ItemRow]:
    """Return some items of a batch, in order."""
    return ItemRow.read("i.batch_id = %s AND i.position >= %s ORDER BY i.position LIMIT %s", (batch_id, offset, limit))


def lease(of: BatchRow, *, limit: int) -> list[Leased]:
    """Lease the first due items of a batch, in the caller's transaction, and return them in order.

    For a batch that runs in order, returns nothing while another worker has it locked, or while any of its items is
    leased or put off.
    """
    if of.is_in_order and not _is_free(of.id):
        return []
    mark = uuid7()
    items = rows(
        "UPDATE batch_items t SET lease = %s, due_at = app_now() + make_interval(secs => %s)"
        # An array is made once. A join may run the subquery for every row, and then leases the whole batch.
        " WHERE t.batch_id = %s AND t.position = ANY(ARRAY("
        f"SELECT i.position FROM batch_items i WHERE {_DUE} ORDER BY i.position LIMIT %s FOR UPDATE SKIP LOCKED"
        ")) RETURNING t.position, t.body, t.put_off",
        (mark, LEASE_S, of.id, of.id, limit),
    )
    return [
        Leased(of=of, position=position, body=body, put_off=put_off, lease=mark)
        for position, body, put_off in sorted(items)
    ]


def _is_free(batch_id: UUID) -> bool:
    """Lock a batch unless another worker is at it; whether none of its items is leased or paused."""
    # Two statements: the second has to see what was committed before the lock was had.
    if not is_true("SELECT 1 FROM batches WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED", (batch_id,)):
        return False
    return not is_true(
        "SELECT 1 FROM batch_items i WHERE i.batch_id = %s AND i.status = 'pending' AND i.due_at > (SELECT app_now())"
        " LIMIT 1",
        (batch_id,),
    )


def begin(item: Leased) -> int:
    """Note that a worker begins an item, in a step of its own, and return how often it was begun without an end.

    It outlives the worker, so that an item that kills every one of them is found out. Raises LeaseLostError.
    """
    begun: int | None = value(
        "UPDATE batch_items SET begun = begun + 1, due_at = app_now() + make_interval(secs => %s)"
        f" WHERE {_MINE} RETURNING begun",
        (LEASE_S, *item.key),
    )
    if begun is None:
        raise LeaseLostError
    return begun


def begin_together(items: Sequence[Leased]) -> list[Leased]:
    """Note that a worker begins items of one batch side by side, in a step of its own, and return those it may.

    Left out is what another worker has by now, and what was begun before without an end: that may be what ended its
    worker, and is done alone, where begin() counts on.
    """
    begun = column(
        "UPDATE batch_items SET begun = 1, due_at = app_now() + make_interval(secs => %s)"
        f" WHERE {_MINE_OF} AND begun = 0 RETURNING position",
        (LEASE_S, *_places(items)),
    )
    return [item for item in items if item.position in begun]


def lock_together(items: Sequence[Leased]) -> list[Leased]:
    """Lock items of one batch that runs in no order, as lock() does, and return those that are still to be done."""
    if not in_transaction():
        raise RuntimeError("items are locked in the transaction of their effect")
    positions = column(
        f"SELECT position FROM batch_items WHERE {_MINE_OF} ORDER BY position FOR NO KEY UPDATE", _places(items)
    )
    return [item for item in items if item.position in positions]


def succeed_together(items: Sequence[Leased], results: Mapping[int, str]) -> None:
    """Record what items made, by position, in the transaction that made it and that lock_together() opened."""
    execute(
        "UPDATE batch_items i SET status = 'success', result = made.result, body = '', lease = NULL"
        " FROM json_each_text(%s) AS made (place, result)"
        " WHERE i.batch_id = %s AND i.position = made.place::integer",
        (msgspec.json.encode(results).decode(), items[0].of.id),
    )


def _places(items: Sequence[Leased]) -> tuple[object, ...]:
    """Return the key of these leases, which one turn gave for one batch."""
    return items[0].of.id, [item.position for item in items], items[0].lease


def lock(item: Leased) -> None:
    """Lock an item, first in the transaction of its effect; raises LeaseLostError if this worker lost its lease.

    Until the transaction ends no other process can end the item, nor, in a batch in order, any other of its items.
    """
    if not in_transaction():
        raise RuntimeError("an item is locked in the transaction of its effect")
    if item.of.is_in_order:
        execute("SELECT 1 FROM batches WHERE id = %s FOR NO KEY UPDATE", (item.of.id,))
    is_mine = is_true(f"SELECT 1 FROM batch_items WHERE {_MINE} FOR NO KEY UPDATE", item.key)
    if not is_mine or (item.of.is_in_order and _waits_for_another(item)):
        raise LeaseLostError


def _waits_for_another(item: Leased) -> bool:
    return is_true(
        "SELECT 1 FROM batch_items WHERE batch_id = %s AND position < %s AND status = 'pending' LIMIT 1",
        (item.of.id, item.position),
    )


def succeed(item: Leased, result: bytes) -> None:
    """Record what an item made, in the transaction that made it and that lock() opened."""
    if not touched(
        f"UPDATE batch_items SET status = 'success', result = %s, body = '', lease = NULL WHERE {_MINE}",
        (result.decode(), *item.key),
    ):
        raise LeaseLostError


def fail(item: Leased, *, code: str, message: str) -> None:
    """Record why an item came to nothing, in the caller's transaction, which holds nothing of it.

    In a batch that runs in order all items behind it are skipped. Raises LeaseLostError.
    """
    lock(item)
    execute(
        "UPDATE batch_items SET status = 'error', error_code = %s, error_message = %s, body = '', lease = NULL"
        f" WHERE {_MINE}",
        (code, message, *item.key),
    )
    if item.of.is_in_order:
        execute(
            "UPDATE batch_items SET status = 'error', error_code = %s, error_message = %s, body = '', lease = NULL"
            " WHERE batch_id = %s AND position > %s AND status = 'pending'",
            (BatchSkipped.code, BatchSkipped.text, item.of.id, item.position),
        )


def put_off(item: Leased, *, pause_s: int) -> None:
    """Have an item tried again after a pause: the gateway could not do it just now. It came to an end all the same."""
    execute(
        "UPDATE batch_items SET lease = NULL, begun = 0, put_off = put_off + 1,"
        f" due_at = app_now() + make_interval(secs => %s) WHERE {_MINE}",
        (pause_s, *item.key),
    )


def give_back(items: Sequence[Leased], *, pause_s: int = 0) -> None:
    """End the leases of items that were not begun; others may take them up after the pause."""
    for item in items:
        execute(
            f"UPDATE batch_items SET lease = NULL, due_at = app_now() + make_interval(secs => %s) WHERE {_MINE}",
            (pause_s, *item.key),
        )

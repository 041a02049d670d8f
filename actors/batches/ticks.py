"""Does the items of batches. Notified when a batch is accepted, while there is more to do, and every second.

Each run does a few items, shared among all merchants that have some, and notifies the actor again before it begins: so
a free thread joins in, and one merchant's thousands of items do not delay another's single one. The items of a worker
that died are leased again when its leases end.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from structlog.contextvars import bound_contextvars

from actors.batches import items as batches_items
from actors.batches import together
from actors.context import Context, context
from actors.queue.broker import doorbell, ring
from core.errors import DomainError, GatewayBusy, GatewayInternalError, PayoutDuplicateReference
from core.errors.base import SERVER_ERROR
from core.ids import NIL
from models.addresses.spare import AddressReserve
from models.batches import items as batch_items
from models.batches import rows as batches
from models.batches.items import Leased, LeaseLostError
from models.batches.rows import LeasedRound
from models.db.base import (
    DEADLOCK,
    LOCK_NOT_AVAILABLE,
    QUERY_CANCELED,
    SERIALIZATION_FAILURE,
    StoreUnavailableError,
    pgcode,
    repeat_on_deadlock,
    transaction,
)

log = structlog.get_logger()

# Items that one run does: few, so that each merchant's turn comes soon.
ITEMS_A_RING: Final = 16
# An item that this many workers began and none ended is taken to be the cause of their deaths.
BEGUN_MAX: Final = 5
# How long an item waits each time that the gateway cannot do it just now; afterwards it fails with the reason.
PAUSES_S: Final = (1, 2, 4, 8, 15, 30, 60)
# Another transaction holds rows that the merchant's items need: the items wait, the worker does not.
BLOCKED_PAUSE_S: Final = 1

_PASSING: Final = frozenset({LOCK_NOT_AVAILABLE, QUERY_CANCELED, DEADLOCK, SERIALIZATION_FAILURE})


class _Round:
    """This process's place in its round over the merchants; shared between its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reached = NIL

    def take(self) -> UUID:
        """Return the merchant after whom the next turn begins."""
        with self._lock:
            return self._reached

    def go_on(self, turn: LeasedRound) -> None:
        """Note how far a turn came."""
        if turn.merchants:
            with self._lock:
                self._reached = turn.merchants[-1]


_round: Final = _Round()


@doorbell(queue="batches")
def run_batches() -> None:
    """Do the due items of one turn over the merchants."""
    after = _round.take()
    turn = repeat_on_deadlock(_lease, after)
    _round.go_on(turn)
    if turn.items:
        # Before the work: another thread sees whether there is more.
        ring("run_batches")
        _run(turn)
    repeat_on_deadlock(batches.complete, turn.batches)
    if turn.items:
        # And after it: a batch that runs in order had nothing for another thread meanwhile.
        ring("run_batches")


def _run(turn: LeasedRound) -> None:
    ctx = context()
    run = Run(ctx=ctx, spare=AddressReserve(ctx.settings.pool_low // 2))
    for _, items in itertools.groupby(turn.items, key=lambda item: item.of.id):
        run.do(list(items))


def _lease(after: UUID) -> LeasedRound:
    with transaction():
        return batches.lease_turn(limit=ITEMS_A_RING, after=after)


@dataclass(slots=True)
class Run:
    """One worker's run over its leased items."""

    ctx: Context
    spare: AddressReserve

    def do(self, items: list[Leased]) -> None:
        """Do items of one batch in order, until one shows that the next cannot be done now."""
        with bound_contextvars(request_id=items[0].of.request_id):
            items = together.create_payments(self.ctx, items, self.spare)
        for number, item in enumerate(items):
            with bound_contextvars(request_id=item.of.request_id):
                pause_s = self._end(item)
            if pause_s is not None:
                batch_items.give_back(items[number + 1 :], pause_s=pause_s)
                return

    def _end(self, item: Leased) -> int | None:
        """End an item. Returns None if the next item may follow, else the pause in seconds before the next ones.

        Raises StoreUnavailableError: nothing can be recorded then, and the leases expire.
        """
        try:
            if batch_items.begin(item) > BEGUN_MAX:
                log.error("batch.item_given_up", batch_id=str(item.of.id), position=item.position)
                return _fail(item, GatewayInternalError())
            self._do(item)
        except LeaseLostError:
            return _rest(item)
        except DomainError as refusal:
            return _refuse(item, refusal)
        except StoreUnavailableError:
            raise
        except Exception as error:
            if pgcode(error) in _PASSING:
                return _put_off(item, GatewayBusy(), blocked_s=BLOCKED_PAUSE_S)
            log.exception("batch.item_failed", batch_id=str(item.of.id), position=item.position)
            return _fail(item, GatewayInternalError())
        return None

    def _do(self, item: Leased) -> None:
        """Do an item: its effect, its result and its status are one transaction."""
        with batches_items.prepared(self.ctx, item, self.spare) as create:

            def step() -> None:
                with transaction():
                    batch_items.lock(item)
                    batch_items.succeed(item, create())

            repeat_on_deadlock(step)


def _refuse(item: Leased, refusal: DomainError) -> int | None:
    """Fail an item for a refusal; put it off if the refusal will pass (no rate, no address, a concurrent order)."""
    if refusal.status >= SERVER_ERROR or isinstance(refusal, PayoutDuplicateReference):
        return _put_off(item, refusal)
    return _fail(item, refusal)


def _put_off(item: Leased, reason: DomainError, *, blocked_s: int | None = None) -> int | None:
    if item.put_off >= len(PAUSES_S):
        return _fail(item, reason)
    batch_items.put_off(item, pause_s=PAUSES_S[item.put_off])
    return _rest(item, blocked_s)


def _rest(item: Leased, pause_s: int | None = None) -> int | None:
    """Return the pause of the items after a failed one; 0 in an ordered batch: this worker does none of them now."""
    return 0 if item.of.is_in_order else pause_s


def _fail(item: Leased, error: DomainError) -> int | None:
    try:
        repeat_on_deadlock(_record, item, error)
    except LeaseLostError:
        log.info("batch.lease_lost", batch_id=str(item.of.id), position=item.position)
    return _rest(item)


def _record(item: Leased, error: DomainError) -> None:
    with transaction():
        batch_items.fail(item, code=error.code, message=error.message)

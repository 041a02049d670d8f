"""Creates a batch's payments together: the plainly new ones of a turn, by one statement and one commit.

Used by actors.batches.ticks, which then does the remaining items one by one. No actor.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

import structlog

from actors.batches import items as batches_items
from actors.context import Context
from actors.invoices import orders as invoice_orders
from actors.invoices.orders import Ready
from core.errors import DomainError
from core.invoices.schemas import CreatePayment
from models.addresses.spare import AddressReserve
from models.batches import items as batch_items
from models.batches.items import Leased
from models.db.base import StoreUnavailableError, transaction
from models.queue import calls
from models.queue.calls import CallInfo

log = structlog.get_logger()

# Creating payments together is worth it from two on.
TOGETHER_MIN: Final = 2
# A thread rests this many times as long as it worked: callers who wait for their payments need the machine more.
REST: Final = 4
REST_MAX_S: Final = 0.5


def create_payments(ctx: Context, items: Sequence[Leased], spare: AddressReserve) -> list[Leased]:
    """Create the payments of one batch's leased items; return the items that are still to be done.

    These are all items of a batch of another kind, or of one that runs in order; items that are malformed, refused or
    not plainly new; and all items if the step fails, which then did nothing. Raises StoreUnavailableError.
    """
    of = items[0].of
    if of.kind != "payment" or of.is_in_order or len(items) < TOGETHER_MIN:
        return list(items)
    began = time.monotonic()
    try:
        done = _create(ctx, batch_items.begin_together(items), spare)
    except StoreUnavailableError:
        raise
    except Exception:
        log.warning("batch.not_together", batch_id=str(of.id), exc_info=True)
        done = set()
    time.sleep(min(REST_MAX_S, REST * (time.monotonic() - began)))
    return [item for item in items if item.position not in done]


def _create(ctx: Context, begun: Sequence[Leased], spare: AddressReserve) -> set[int]:
    """Create the payments of begun items; return the positions of the items that were done."""
    asked = list(_read(ctx, begun))
    if asked:
        # Not from the cache: with stale terms every item would be done alone.
        ctx.terms.refresh(asked[0][1].merchant())
    ready = invoice_orders.plainly_new(ctx, [(info, body) for _, info, body in asked], may_take=spare.allows)
    if not ready:
        return set()
    made: dict[UUID, str] = {}
    try:
        made = _write({info.call_id: item for item, info, _ in asked}, ready)
    finally:
        invoice_orders.give_back_unused(ctx, ready, made)
    return {item.position for item, info, _ in asked if info.call_id in made}


def _read(ctx: Context, items: Sequence[Leased]) -> Iterator[tuple[Leased, CallInfo, CreatePayment]]:
    for item in items:
        with contextlib.suppress(DomainError):
            yield item, batches_items.call_of(item.of), batches_items.read_payment(ctx, item)


def _write(items: Mapping[UUID, Leased], ready: Sequence[tuple[CallInfo, Ready]]) -> dict[UUID, str]:
    """Create payments and record them as the results of their items, in one transaction; return answers by call."""
    with transaction():
        locked = batch_items.lock_together([items[info.call_id] for info, _ in ready])
        made = invoice_orders.create_together([one for one in ready if items[one[0].call_id] in locked])
        # The answers are kept with the items; no caller asks for these calls.
        calls.forget(*made)
        batch_items.succeed_together(locked, {items[call_id].position: answer for call_id, answer in made.items()})
    return made

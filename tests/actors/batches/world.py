"""Creates batches as the API does, and does them as a worker does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from actors import context
from actors.batches import calls, ticks
from core.batches import schemas as batch_schemas
from core.batches.schemas import BatchKind, CreateBatch, CreatePaymentBatch, CreatePayoutBatch, CreateRefundBatch
from core.http.requests import read_request
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.batches.items import LEASE_S
from models.db.base import execute, one, rows
from models.merchants import rows as merchants
from models.queue.calls import CallInfo
from tests.actors import asking
from tests.actors.asking import ask
from tests.models.addresses.test_pool import PUBLIC_KEY
from tests.models.builders import begin_scans
from tests.models.payouts.builders import RECIPIENT
from tests.models.queue.builders import info

PAYMENT: Final = {"amount": "10", "currency": "USD", "to_currency": "USDT", "network": "ethereum"}
AGNOSTIC: Final = {"amount": "10", "currency": "USD"}
PAYOUT: Final = {"amount": "1", "currency": "USDT", "network": "ethereum", "address": RECIPIENT}
# For tests with addresses: two chunks of them.
FREE_ADDRESSES: Final = 128
# More ticks than any batch of a test needs.
RINGS_MAX: Final = 200

_SCHEMAS: Final[dict[BatchKind, tuple[str, type[CreateBatch], Any]]] = {
    "payment": ("payments", CreatePaymentBatch, calls.create_payment_batch),
    "payout": ("payouts", CreatePayoutBatch, calls.create_payout_batch),
    "refund": ("refunds", CreateRefundBatch, calls.create_refund_batch),
}


class Item(NamedTuple):
    """The stored state of an item."""

    status: str
    result: Any
    code: str | None
    message: str | None


def configure(database: str, **env: str) -> None:
    """Configure a gateway with providers for ethereum and bsc."""
    # Small enough for the pools of tests.
    asking.configure(database, **{"ADDRESS_PUBLIC_KEY": PUBLIC_KEY, "POOL_LOW": "2"} | env)
    begin_scans()


def key_of(merchant_id: UUID) -> str:
    """Give a merchant an API key and return its public id."""
    return merchants.create_key(merchant_id, "unified", "", SecretBox(DEVELOPMENT_SECRET_KEYS)).public_id


def take(
    merchant_id: UUID,
    items: Sequence[object],
    *,
    kind: BatchKind = "payment",
    on_error: str = "continue",
    principal: str = "pk_nobody",
    call: CallInfo | None = None,
) -> UUID:
    """Create a batch and return its id."""
    name, schema, actor = _SCHEMAS[kind]
    body = read_request(schema, {name: list(items), "on_error": on_error}, own_hosts=frozenset())
    asked = replace(call or info(merchant_id), principal_id=principal)
    answer = ask(actor, asked, batch_schemas.message(body))
    assert (answer["kind"], answer["count"], answer["status"]) == (kind, len(items), "pending")
    return UUID(answer["batch_id"])


def run_all() -> None:
    """Run ticks until one changes nothing."""
    before = None
    for _ in range(RINGS_MAX):
        ticks.run_batches()
        now = rows("SELECT batch_id, position, status, begun, put_off FROM batch_items ORDER BY 1, 2")
        if now == before:
            return
        before = now
    raise AssertionError("the batches do not come to an end")


def work_on(limit_s: float = 60.0) -> None:
    """Run ticks, as one of several workers, until every batch is completed."""
    until = time.monotonic() + limit_s
    while one("SELECT 1 FROM batches WHERE status <> 'completed'"):
        assert time.monotonic() < until, "the batches do not come to an end"
        ticks.run_batches()


def pass_by(seconds: int = LEASE_S + 1) -> None:
    """Move the clock: by default, until leases have ended."""
    execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
    context.context().market.forget()


def items_of(batch_id: UUID) -> list[Item]:
    """Return a batch's items, in order."""
    stored = rows(
        "SELECT status, result, error_code, error_message FROM batch_items WHERE batch_id = %s ORDER BY position",
        (batch_id,),
    )
    return [Item(row[0], row[1] and msgspec.json.decode(row[1]), row[2], row[3]) for row in stored]


def statuses(batch_id: UUID) -> list[str]:
    """Return each item's status: success, pending, or the code of its error."""
    return [item.code or item.status for item in items_of(batch_id)]


def status_of(batch_id: UUID) -> str:
    row = one("SELECT status FROM batches WHERE id = %s", (batch_id,))
    assert row is not None
    return str(row[0])


def count(table: str) -> int:
    row = one(f"SELECT count(*) FROM {table}")
    assert row is not None
    return int(row[0])

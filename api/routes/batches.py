"""Declares the endpoints of batches: many payments, payouts or refunds in one call, which actors make afterwards."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID

from actors.queue.call_specs import CREATE_PAYMENT_BATCH, CREATE_PAYOUT_BATCH, CREATE_REFUND_BATCH
from api.endpoints import ANY_KEY, PAYMENT_KEYS, PAYOUT_KEYS, Actor, Call, Endpoint, Reply, answered
from api.gateway import Gateway
from api.routes.invoices.calls import EXAMPLE as PAYMENT
from core.batches import schemas as batch_schemas
from core.batches.schemas import (
    BatchCreated,
    BatchInfo,
    BatchLookup,
    CreatePaymentBatch,
    CreatePayoutBatch,
    CreateRefundBatch,
)
from core.errors import BatchNotFound
from core.http.requests import PAGE_MAX
from models.batches import items as batch_items
from models.batches import rows as batches
from models.batches import views as batch_views


def batch_message(call: Call) -> batch_schemas.NewBatch:
    """Return the message of a batch. Its items are not validated here, but one by one, later."""
    return batch_schemas.message(cast("batch_schemas.CreateBatch", call.body))


def read_info(gateway: Gateway, call: Call) -> Reply:
    """Return one batch with its items, or raise an error for another merchant's as for a missing one."""
    lookup = cast("BatchLookup", call.body)
    batch = batches.find(call.merchant().merchant_id, UUID(lookup.batch_id))
    if batch is None:
        raise BatchNotFound
    is_large = min(lookup.size, batch.count - lookup.offset) > PAGE_MAX
    with gateway.large.taken(batch.merchant_id if is_large else None):
        # Read after the batch: when that says completed, no item waits.
        items = batch_items.page(batch.id, limit=lookup.size, offset=lookup.offset)
        return answered(batch_views.info(batch, items))


_ID: Final = "0190b3c6-9e10-7b20-8d3c-6f5e4d3c2b1a"
_ADDRESS: Final = "0x52908400098527886E0F7030069857D2E4169EE7"
_DESCRIPTION: Final = (
    "1 to 5000 items, taken at once and done afterwards: read them with POST /v1/batch/info. An item that is malformed"
    " or refused fails by itself. With on_error stop they are done in order, and after the first failure the rest is"
    " skipped. Idempotency-Key covers the whole batch; "
)


def _created(kind: str, count: int) -> dict[str, Any]:
    return {"batch_id": _ID, "kind": kind, "count": count, "status": "pending"}


ENDPOINTS: Final = (
    Endpoint(
        path="/v1/payment/batch",
        name="createPaymentBatch",
        tag="Batches",
        summary="Create payments",
        description=f"{_DESCRIPTION}an item is recognised by its order_id.",
        rights=PAYMENT_KEYS,
        request=CreatePaymentBatch,
        result=BatchCreated,
        actor=Actor(spec=CREATE_PAYMENT_BATCH, message=batch_message),
        creates=True,
        examples={
            "request": {
                "payments": [
                    {"amount": "125.50", "currency": "USD", "order_id": "order-1042"},
                    {"amount": "12", "currency": "USD", "order_id": "order-1043"},
                ],
                "on_error": "continue",
            },
            "result": _created("payment", 2),
        },
    ),
    Endpoint(
        path="/v1/payout/batch",
        name="createPayoutBatch",
        tag="Batches",
        summary="Create payouts",
        description=(
            f"{_DESCRIPTION}an item is recognised by its order_id, which is required. One whose funds are still"
            " maturing fails and can be sent again in another batch."
        ),
        rights=PAYOUT_KEYS,
        request=CreatePayoutBatch,
        result=BatchCreated,
        actor=Actor(spec=CREATE_PAYOUT_BATCH, message=batch_message),
        creates=True,
        examples={
            "request": {
                "payouts": [
                    {
                        "order_id": "salary-7",
                        "amount": "250",
                        "currency": "USDT",
                        "network": "ethereum",
                        "address": _ADDRESS,
                    }
                ],
                "on_error": "stop",
            },
            "result": _created("payout", 1),
        },
    ),
    Endpoint(
        path="/v1/refund/batch",
        name="createRefundBatch",
        tag="Batches",
        summary="Create refunds",
        description=f"{_DESCRIPTION}an item is recognised by payment, address and amount.",
        rights=PAYOUT_KEYS,
        request=CreateRefundBatch,
        result=BatchCreated,
        actor=Actor(spec=CREATE_REFUND_BATCH, message=batch_message),
        creates=True,
        examples={
            "request": {"refunds": [{"order_id": "order-1042"}, {"order_id": "order-1043", "amount": "5"}]},
            "result": _created("refund", 2),
        },
    ),
    Endpoint(
        path="/v1/batch/info",
        name="getBatch",
        tag="Batches",
        summary="Read a batch",
        description=(
            "completed means that all items are handled, not that all succeeded. An item's result is"
            " the created object; its error is the one that its own endpoint would have returned."
        ),
        rights=ANY_KEY,
        request=BatchLookup,
        result=BatchInfo,
        reader=read_info,
        errors=(BatchNotFound,),
        examples={
            "request": {"batch_id": _ID},
            "result": {
                "batch_id": _ID,
                "kind": "payment",
                "status": "completed",
                "on_error": "continue",
                "count": 2,
                "succeeded": 1,
                "failed": 1,
                "created_at": "2025-11-24T15:00:00.000Z",
                "completed_at": "2025-11-24T15:00:01.250Z",
                "items": [
                    {"index": 0, "order_id": "order-1042", "status": "success", "result": PAYMENT, "error": None},
                    {
                        "index": 1,
                        "order_id": "order-1043",
                        "status": "error",
                        "result": None,
                        "error": {"code": "payment.below_minimum", "message": "The amount is below the minimum."},
                    },
                ],
            },
        },
    ),
)

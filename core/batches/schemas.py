"""Declares requests and answers of asynchronous batches, and the message that carries one to its actor.

Read as core.http.requests is.
Items are not looked into here: one that is malformed is refused when its turn comes, and spoils no other.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct

from core.errors import BatchBadId, BatchBadOnError, BatchEmpty, BatchTooLarge
from core.http.answers import Answer
from core.http.requests import Request, UuidText, any_of, items_of
from core.invoices.schemas import CreatePayment, Payment
from core.payouts.schemas import ORDER_ID_CHARS_MAX, CreatedPayout, CreatePayout
from core.refunds.schemas import CreateRefund, PaymentRefund

ITEMS_MAX: Final = 5_000
OFFSET_MAX: Final = 10**9

BatchKind = Literal["payment", "payout", "refund"]
OnError = Literal["continue", "stop"]
_RESULTS: Final = any_of(Payment, CreatedPayout, PaymentRefund)


class NewBatch(Struct, kw_only=True):
    """The message of a batch: the items as JSON texts, each with the order_id to show for it."""

    on_error: OnError
    items: list[str]
    order_ids: list[str]


class CreateBatch(Request, kw_only=True, omit_defaults=True):
    """The common part of all batches."""

    refusals: ClassVar = {"on_error": BatchBadOnError}
    breaches: ClassVar = (BatchEmpty, BatchTooLarge)
    # The field that holds the items.
    items_name: ClassVar[str]

    on_error: Annotated[
        Literal["continue", "stop", ""],
        Meta(
            description="stop: items are handled in order, and the first failure skips the rest; continue: each"
            " item is handled. Default continue."
        ),
    ] = "continue"

    def orders(self) -> list[Any]:
        """Return the items as they were sent."""
        items: list[Any] = getattr(self, self.items_name)
        return items

    def check(self, own_hosts: frozenset[str]) -> None:  # noqa: ARG002
        """Refuse too few items and too many."""
        count = len(self.orders())
        if count == 0:
            raise BatchEmpty
        if count > ITEMS_MAX:
            raise BatchTooLarge


class CreatePaymentBatch(CreateBatch, kw_only=True, omit_defaults=True):
    """Payments to create (POST /v1/payment/batch)."""

    items_name: ClassVar[str] = "payments"
    absences: ClassVar = {"payments": BatchEmpty}

    payments: Annotated[
        list[Any],
        Meta(
            extra_json_schema=items_of(CreatePayment, items_max=ITEMS_MAX),
            description="1 to 5000 payments, in the form of POST /v1/payment. A malformed one fails alone.",
        ),
    ]


class CreatePayoutBatch(CreateBatch, kw_only=True, omit_defaults=True):
    """Payouts to create (POST /v1/payout/batch)."""

    items_name: ClassVar[str] = "payouts"
    absences: ClassVar = {"payouts": BatchEmpty}

    payouts: Annotated[
        list[Any],
        Meta(
            extra_json_schema=items_of(CreatePayout, items_max=ITEMS_MAX),
            description="1 to 5000 payouts, in the form of POST /v1/payout. A malformed one fails alone.",
        ),
    ]


class CreateRefundBatch(CreateBatch, kw_only=True, omit_defaults=True):
    """Refunds to create (POST /v1/refund/batch)."""

    items_name: ClassVar[str] = "refunds"
    absences: ClassVar = {"refunds": BatchEmpty}

    refunds: Annotated[
        list[Any],
        Meta(
            extra_json_schema=items_of(CreateRefund, items_max=ITEMS_MAX),
            description="1 to 5000 refunds, in the form of POST /v1/payment/refund. A malformed one fails alone.",
        ),
    ]


class BatchLookup(Request, kw_only=True, omit_defaults=True):
    """A batch and a range of its items (POST /v1/batch/info)."""

    refusals: ClassVar = {"batch_id": BatchBadId}

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier.", min_length=1)]
    limit: (
        Annotated[int, Meta(description="The number of items to show: 1 to 5000. Default, and any other value: all.")]
        | None
    ) = None
    offset: Annotated[
        int, Meta(ge=0, le=OFFSET_MAX, description="The number of items to skip, from the first. Default 0.")
    ] = 0

    @property
    def size(self) -> int:
        """Return how many items are shown at most."""
        return self.limit if self.limit is not None and 1 <= self.limit <= ITEMS_MAX else ITEMS_MAX


def message(batch: CreateBatch) -> NewBatch:
    """Return the message that carries a batch to its actor.

    The standard library writes the items: numbers and texts survive its reading and writing unchanged.
    """
    orders = batch.orders()
    return NewBatch(
        on_error="stop" if batch.on_error == "stop" else "continue",
        items=[json.dumps(order, separators=(",", ":")) for order in orders],
        order_ids=[_shown_order_id(order) for order in orders],
    )


def _shown_order_id(order: object) -> str:
    """Return an item's order_id as far as it can be one: it is shown even where the item turns out to be malformed."""
    order_id = order.get("order_id") if isinstance(order, dict) else None
    if not isinstance(order_id, str) or len(order_id) > ORDER_ID_CHARS_MAX or "\x00" in order_id:
        return ""
    return "" if any("\ud800" <= char <= "\udfff" for char in order_id) else order_id


class BatchCreated(Answer, kw_only=True):
    """An accepted batch."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier.")]
    kind: Annotated[BatchKind, Meta(description="The kind of its items.")]
    count: Annotated[int, Meta(description="The number of accepted items.", examples=[2])]
    status: Annotated[Literal["pending"], Meta(description="pending: no item has been handled yet.")]


class BatchItemError(Answer, kw_only=True):
    """The error of an item, as its own endpoint would have returned it."""

    code: Annotated[
        str,
        Meta(description="The error's code. batch.skipped: an earlier item failed.", examples=["payment.bad_amount"]),
    ]
    message: Annotated[str, Meta(description="The error in words. The wording may change.")]


class BatchItem(Answer, kw_only=True):
    """One item of a batch."""

    index: Annotated[int, Meta(description="The item's place in the request, from 0.")]
    order_id: Annotated[str, Meta(description="The item's order_id; empty if it has none.")]
    status: Annotated[
        Literal["pending", "success", "error"], Meta(description="pending: the item has not been handled yet.")
    ]
    result: Annotated[
        Annotated[dict[str, Any], Meta(extra_json_schema=_RESULTS)] | None,
        Meta(description="The created object; null unless status is success."),
    ]
    error: Annotated[BatchItemError | None, Meta(description="The reason of the failure; null unless status is error.")]


class BatchInfo(Answer, kw_only=True):
    """A batch with the results of its items, in their order."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier.")]
    kind: Annotated[BatchKind, Meta(description="The kind of its items.")]
    status: Annotated[
        Literal["pending", "processing", "completed"],
        Meta(description="completed: all items are handled, with or without success."),
    ]
    on_error: Annotated[OnError, Meta(description="stop: a failure skips the items after it; continue: it does not.")]
    count: Annotated[int, Meta(description="The number of all items.")]
    succeeded: Annotated[int, Meta(description="The number of successful items so far.")]
    failed: Annotated[int, Meta(description="The number of failed items so far, with the skipped ones.")]
    created_at: Annotated[str, Meta(description="Time in ISO 8601, UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    completed_at: Annotated[str | None, Meta(description="Time in ISO 8601, UTC; null until the batch is completed.")]
    items: Annotated[list[BatchItem], Meta(description="The requested range of items, in the order of the batch.")]

"""Declares requests and answers of asynchronous batches, and the message that carries one to its actor.

Read as core.net.requests is.
Items are not looked into here: one that is malformed is refused when its turn comes, and spoils no other.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct

from core.errors import BatchBadId, BatchBadOnError, BatchEmpty, BatchTooLarge
from core.invoices.schemas import CreatePayment, Payment
from core.net.answers import Answer
from core.net.requests import Request, UuidText, any_of, items_of
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
    """What all batches have in common."""

    refusals: ClassVar = {"on_error": BatchBadOnError}
    # The field that holds the items.
    items_name: ClassVar[str]

    on_error: Annotated[
        Literal["continue", "stop", ""],
        Meta(description="stop: in order, and after the first failure the rest is skipped. By default continue."),
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
            description="As POST /v1/payment takes them; a malformed one fails alone.",
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
            description="As POST /v1/payout takes them; a malformed one fails alone.",
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
            description="As POST /v1/payment/refund takes them; a malformed one fails alone.",
        ),
    ]


class BatchLookup(Request, kw_only=True, omit_defaults=True):
    """Which batch is meant, and which of its items are shown (POST /v1/batch/info)."""

    refusals: ClassVar = {"batch_id": BatchBadId}

    batch_id: Annotated[UuidText, Meta(description="As its creation answered.", min_length=1)]
    limit: Annotated[int, Meta(description="Items shown: 1 to 5000; anything else, and no limit, is all.")] | None = (
        None
    )
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="Items passed over, from the first.")] = 0

    @property
    def size(self) -> int:
        """Return how many items are shown at most."""
        return self.limit if self.limit is not None and 1 <= self.limit <= ITEMS_MAX else ITEMS_MAX


def message(batch: CreateBatch) -> NewBatch:
    """Return the message that carries a batch to its actor.

    The standard library writes the items: whatever number or text it has read, it writes so that it reads it again.
    """
    orders = batch.orders()
    return NewBatch(
        on_error="stop" if batch.on_error == "stop" else "continue",
        items=[json.dumps(order, separators=(",", ":")) for order in orders],
        order_ids=[_shown_order_id(order) for order in orders],
    )


def _shown_order_id(order: object) -> str:
    """Return an item's order_id as far as it can be one: it is shown even where the item turns out to be malformed."""
    found = order.get("order_id") if isinstance(order, dict) else None
    if not isinstance(found, str) or len(found) > ORDER_ID_CHARS_MAX or "\x00" in found:
        return ""
    return "" if any("\ud800" <= char <= "\udfff" for char in found) else found


class BatchCreated(Answer, kw_only=True):
    """A batch that was taken."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier.")]
    kind: Annotated[BatchKind, Meta(description="What its items are.")]
    count: Annotated[int, Meta(description="Items taken.", examples=[2])]
    status: Annotated[Literal["pending"], Meta(description="pending: nothing is done yet.")]


class BatchItemError(Answer, kw_only=True):
    """Why an item failed, as its own endpoint would have answered."""

    code: Annotated[str, Meta(description="batch.skipped: an item before it failed.", examples=["payment.bad_amount"])]
    message: Annotated[str, Meta(description="In words, which may change.")]


class BatchItem(Answer, kw_only=True):
    """One item of a batch."""

    index: Annotated[int, Meta(description="Its place in the request, from 0.")]
    order_id: Annotated[str, Meta(description="As sent; empty where it had none.")]
    status: Annotated[Literal["pending", "success", "error"], Meta(description="pending until its turn has come.")]
    result: Annotated[
        Annotated[dict[str, Any], Meta(extra_json_schema=_RESULTS)] | None,
        Meta(description="The object as it was created; null without success."),
    ]
    error: Annotated[BatchItemError | None, Meta(description="Why it failed; null unless it did.")]


class BatchInfo(Answer, kw_only=True):
    """A batch with the outcome of its items, in their order."""

    batch_id: Annotated[UuidText, Meta(description="The batch's identifier.")]
    kind: Annotated[BatchKind, Meta(description="What its items are.")]
    status: Annotated[
        Literal["pending", "processing", "completed"],
        Meta(description="completed: all items are handled, whether or not they succeeded."),
    ]
    on_error: Annotated[OnError, Meta(description="What a failure does to the items after it.")]
    count: Annotated[int, Meta(description="Items in all.")]
    succeeded: Annotated[int, Meta(description="Items that succeeded so far.")]
    failed: Annotated[int, Meta(description="Items that failed, those skipped included.")]
    created_at: Annotated[str, Meta(description="ISO 8601 in UTC.", examples=["2026-01-31T12:00:00.000Z"])]
    completed_at: Annotated[str | None, Meta(description="ISO 8601 in UTC; null until it is completed.")]
    items: Annotated[list[BatchItem], Meta(description="Those asked for, in the request's order.")]

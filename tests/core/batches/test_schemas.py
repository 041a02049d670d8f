"""Reads batches without judging their items; an actor gets each item as it was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.batches.schemas import (
    ITEMS_MAX,
    BatchLookup,
    CreateBatch,
    CreatePaymentBatch,
    CreatePayoutBatch,
    CreateRefundBatch,
    message,
)
from core.errors import BatchBadId, BatchBadOnError, BatchEmpty, BatchTooLarge, DomainError, RequestBadField
from core.http.requests import read_request

SCHEMAS: list[tuple[type[CreateBatch], str]] = [
    (CreatePaymentBatch, "payments"),
    (CreatePayoutBatch, "payouts"),
    (CreateRefundBatch, "refunds"),
]
BATCH_ID = "0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d"


def read(schema: Any, **fields: Any) -> Any:
    return read_request(schema, fields, own_hosts=frozenset())


@pytest.mark.parametrize(("schema", "name"), SCHEMAS)
def test_a_batch_has_one_to_five_thousand_items(schema: type[CreateBatch], name: str) -> None:
    for size in (1, ITEMS_MAX):
        assert len(read(schema, **{name: [{}] * size}).orders()) == size
    for body, error in {"": BatchEmpty, "[]": BatchEmpty, "null": BatchEmpty, "5": RequestBadField}.items():
        with pytest.raises(error):
            read(schema, **({name: json.loads(body)} if body else {}))
    with pytest.raises(BatchTooLarge):
        read(schema, **{name: [{}] * (ITEMS_MAX + 1)})


@pytest.mark.parametrize("value", ["halt", 5, [], "STOP"])
def test_on_error_is_continue_or_stop(value: object) -> None:
    for given, meant in {"stop": "stop", "continue": "continue", "": "continue", None: "continue"}.items():
        assert message(read(CreatePaymentBatch, payments=[1], on_error=given)).on_error == meant
    assert message(read(CreatePaymentBatch, payments=[1])).on_error == "continue"
    with pytest.raises(BatchBadOnError):
        read(CreatePaymentBatch, payments=[1], on_error=value)


def test_items_of_any_kind_arrive_as_they_were_sent() -> None:
    items = [None, 5, "ä€", [], {}, {"a": "\ud800"}, {"a": "\x00"}, {"a": 10**40}, {"a": 0.1}, {"a": float("inf")}]

    sent = message(read(CreatePaymentBatch, payments=items))

    assert [json.loads(text) for text in sent.items] == items
    assert all(text.isascii() and text.isprintable() for text in sent.items)


@pytest.mark.parametrize("order_id", [None, 5, "", "x" * 256, "a\x00b", "\udfff", ["a"]])
def test_only_valid_order_ids_are_shown(order_id: object) -> None:
    items = [{"order_id": order_id}, {"order_id": "x" * 255}, {"order_id": "ä"}, "order_id"]

    assert message(read(CreatePaymentBatch, payments=items)).order_ids == ["", "x" * 255, "ä", ""]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, BatchBadId),
        ({"batch_id": ""}, BatchBadId),
        ({"batch_id": "x"}, BatchBadId),
        ({"batch_id": 5}, BatchBadId),
        ({"batch_id": BATCH_ID, "offset": -1}, RequestBadField),
        ({"batch_id": BATCH_ID, "limit": "5"}, RequestBadField),
    ],
)
def test_a_bad_lookup_is_refused(fields: dict[str, Any], error: type[DomainError]) -> None:
    with pytest.raises(error):
        read(BatchLookup, **fields)


@pytest.mark.parametrize(("limit", "size"), [(None, 5000), (1, 1), (5000, 5000), (0, 5000), (-1, 5000), (5001, 5000)])
def test_a_lookup_returns_the_requested_number_of_items_or_all(limit: int | None, size: int) -> None:
    assert read(BatchLookup, batch_id=BATCH_ID, limit=limit).size == size

"""Does one item of a batch, by the kind of its batch. Used by actors.batches.ticks; defines no actor."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from actors.context import Context
from actors.invoices import orders as invoice_orders
from actors.payouts import orders as payout_orders
from actors.refunds import orders as refund_orders
from core.errors import MerchantUnknownKey, RequestBadField
from core.http.requests import read_request
from core.ids import uuid7
from core.invoices.schemas import CreatePayment
from models.addresses.spare import AddressReserve
from models.batches.items import Leased
from models.batches.rows import BatchRow
from models.merchants import rows as merchants
from models.queue.calls import Asker, CallInfo


@contextlib.contextmanager
def prepared(ctx: Context, item: Leased, spare: AddressReserve) -> Iterator[Callable[[], bytes]]:
    """Read an item, outside any transaction; yield the function that does it inside the caller's transaction.

    The function returns the item's result. Both raise the DomainErrors with which the item's own endpoint would answer.
    """
    match item.of.kind:
        case "payment":
            body = read_payment(ctx, item)
            with invoice_orders.prepared(ctx, call_of(item.of), body, may_take=spare.allows) as create:
                yield create
        case "payout":
            payout = payout_orders.read_item(ctx, _fields(item))
            yield lambda: _send(item.of, lambda: payout_orders.create(ctx, _asker(item.of), payout))
        case "refund":
            refund = refund_orders.read_item(ctx, _fields(item))
            yield lambda: _send(item.of, lambda: refund_orders.create(ctx, _asker(item.of), refund))


def _fields(item: Leased) -> Any:
    # The body was checked to be JSON when the batch was accepted.
    return json.loads(item.body)


def read_payment(ctx: Context, item: Leased) -> CreatePayment:
    """Read an item of a batch of payments. Raises DomainError if it is invalid."""
    fields = _fields(item)
    if not isinstance(fields, dict):
        raise RequestBadField("A payment must be an object.")
    return read_request(CreatePayment, fields, own_hosts=ctx.settings.own_hosts)


def call_of(of: BatchRow) -> CallInfo:
    """Return a call without a waiting caller; the item itself knows whether it was done."""
    return CallInfo(
        call_id=uuid7(), merchant_id=of.merchant_id, request_id=of.request_id, idem_key=None, fingerprint=b""
    )


def _asker(of: BatchRow) -> Asker:
    return Asker(of.merchant_id, of.created_by, of.request_id)


def _send(of: BatchRow, create: Callable[[], dict[str, Any]]) -> bytes:
    # A revoked key, which may have been stolen, no longer moves money.
    if merchants.find_key(of.created_by) is None:
        raise MerchantUnknownKey
    return msgspec.json.encode(create())

"""Baseline *stock*, the worker: dramatiq's own Redis broker and results, and rows written one by one by an ORM. Frozen.

`dramatiq bench.baselines.stock_actors -p 1 -t 4`
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import dramatiq
import peewee
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.baselines import order as baseline_order

REDIS_URL = os.environ["BENCH_REDIS_URL"]
NAMESPACE = "stock"

broker = RedisBroker(url=REDIS_URL, namespace=NAMESPACE)
broker.add_middleware(Results(backend=RedisBackend(url=REDIS_URL, namespace=f"{NAMESPACE}-results")))
dramatiq.set_broker(broker)

db = peewee.PostgresqlDatabase(os.environ["BENCH_DATABASE_URL"], autoconnect=True)


class Table(peewee.Model):
    class Meta:
        database = db


class Merchant(Table):
    id = peewee.UUIDField(primary_key=True)
    terms_version = peewee.IntegerField()

    class Meta:
        table_name = "merchants"


class ApiKey(Table):
    id = peewee.UUIDField(primary_key=True)
    public_id = peewee.TextField()
    merchant_id = peewee.UUIDField()
    secret_box = peewee.TextField()
    revoked_at = peewee.DateTimeField(null=True)

    class Meta:
        table_name = "api_keys"


class PoolAddress(Table):
    family = peewee.TextField()
    ordinal = peewee.BigIntegerField()
    address = peewee.TextField()

    class Meta:
        table_name = "pool_addresses"
        primary_key = peewee.CompositeKey("family", "ordinal")


class AddressOwner(Table):
    family = peewee.TextField()
    ordinal = peewee.BigIntegerField()
    owner_kind = peewee.TextField()
    owner_id = peewee.UUIDField()

    class Meta:
        table_name = "address_owners"
        primary_key = peewee.CompositeKey("family", "ordinal")


class Call(Table):
    call_id = peewee.UUIDField(primary_key=True)
    merchant_id = peewee.UUIDField()
    idem_key = peewee.TextField(null=True)
    fingerprint = peewee.BlobField()
    state = peewee.TextField()
    response = peewee.TextField(null=True)

    class Meta:
        table_name = "calls"


class Invoice(Table):
    id = peewee.UUIDField(primary_key=True)
    merchant_id = peewee.UUIDField()
    order_id = peewee.TextField(null=True)
    status = peewee.TextField()
    is_final = peewee.BooleanField()
    is_multi = peewee.BooleanField()
    price_currency = peewee.TextField()
    price_units = peewee.DecimalField()
    pay_currency = peewee.TextField(null=True)
    network = peewee.TextField(null=True)
    payer_units = peewee.DecimalField(null=True)
    generation = peewee.IntegerField()
    address_ordinal = peewee.BigIntegerField(null=True)
    address = peewee.TextField()
    required_confirmations = peewee.IntegerField()
    accuracy_ppm = peewee.IntegerField()
    discount_ppm = peewee.IntegerField()
    subtract_percent = peewee.IntegerField()
    fee_ppm = peewee.IntegerField()
    fee_fixed_usd_cents = peewee.IntegerField()
    fee_fixed_units = peewee.DecimalField(null=True)
    confirmed_units = peewee.DecimalField()
    detected_units = peewee.DecimalField()
    fee_fixed_taken_units = peewee.DecimalField()
    txid = peewee.TextField()
    payer_address = peewee.TextField()
    url_callback = peewee.TextField(null=True)
    url_return = peewee.TextField()
    url_success = peewee.TextField()
    additional_data = peewee.TextField()
    payer_email = peewee.TextField()
    theme = peewee.TextField()
    is_payment_multiple = peewee.BooleanField()
    created_at = peewee.DateTimeField()
    updated_at = peewee.DateTimeField()
    expires_at = peewee.DateTimeField()
    rate_expires_at = peewee.DateTimeField()

    class Meta:
        table_name = "invoices"


class Quote(Table):
    invoice_id = peewee.UUIDField()
    generation = peewee.IntegerField()
    payer_units = peewee.DecimalField()
    fee_fixed_units = peewee.DecimalField()
    valid_from = peewee.DateTimeField()
    rate_expires_at = peewee.DateTimeField()

    class Meta:
        table_name = "quotes"
        primary_key = peewee.CompositeKey("invoice_id", "generation")


class Rate(Table):
    currency = peewee.TextField(primary_key=True)
    usd = peewee.DecimalField()

    class Meta:
        table_name = "rates"


@dramatiq.actor(queue_name="stock", store_results=True, max_retries=0)
def create_invoice(call_id: str, merchant_id: str, idem_key: str, body: str, fingerprint: str) -> dict[str, Any]:
    order = baseline_order.read_order(body)
    with db.atomic():
        call = Call.create(
            call_id=call_id,
            merchant_id=merchant_id,
            idem_key=idem_key,
            fingerprint=bytes.fromhex(fingerprint),
            state="done",
        )
        merchant = Merchant.get_by_id(merchant_id)
        if Invoice.get_or_none(merchant_id=merchant.id, order_id=order.order_id, status="check") is not None:
            raise LookupError("there is such an order")
        ordinal = db.execute_sql("SELECT nextval('address_claims_evm')").fetchone()[0]
        pooled = PoolAddress.get(family=baseline_order.FAMILY, ordinal=ordinal)
        rate = Rate.get_by_id(baseline_order.COIN)
        units = baseline_order.payer_units(baseline_order.cents_of(order.amount), int(rate.usd * 10**18))
        columns = baseline_order.invoice_columns(
            order, merchant_id=merchant.id, ordinal=ordinal, address=baseline_order.display(pooled.address), units=units
        )
        now = datetime.now(UTC)
        expires_at, rate_expires_at = now + timedelta(seconds=3600), now + timedelta(seconds=900)
        moments = {"created_at": now, "updated_at": now, "expires_at": expires_at, "rate_expires_at": rate_expires_at}
        invoice = Invoice.create(**columns, **moments)
        AddressOwner.create(family=baseline_order.FAMILY, ordinal=ordinal, owner_kind="invoice", owner_id=invoice.id)
        Quote.create(
            invoice_id=invoice.id,
            generation=1,
            payer_units=units,
            fee_fixed_units=invoice.fee_fixed_units,
            valid_from=now,
            rate_expires_at=rate_expires_at,
        )
        answer = baseline_order.answer(order, columns) | {
            "expired_at": int(expires_at.timestamp()),
            "rate_expires_at": int(rate_expires_at.timestamp()),
            "created_at": now.isoformat(timespec="milliseconds"),
            "updated_at": now.isoformat(timespec="milliseconds"),
        }
        call.response = baseline_order.msgspec.json.encode(answer).decode()
        call.save(only=[Call.response])
    return answer


@dramatiq.actor(queue_name="stock", store_results=True, max_retries=0)
def echo(text: str) -> str:
    return text

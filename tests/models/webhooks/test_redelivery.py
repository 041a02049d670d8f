"""Sends a merchant's own delivery again, from any status."""

from __future__ import annotations

import uuid

import pytest

from core.errors import WebhookNotFound
from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from models.db.base import execute, one, transaction
from models.merchants.rows import create_merchant
from models.webhooks import outbox, redelivery

pytestmark = pytest.mark.usefixtures("database")

BOX = SecretBox("k1:" + "A" * 43 + "=")


@pytest.fixture
def shop(database: str) -> uuid.UUID:
    del database
    merchant_id = create_merchant("Shop").id
    with transaction():
        outbox.register_endpoint(merchant_id, "https://shop.example/", box=BOX)
        outbox.emit(merchant_id, "invoice.paid", uuid7(), "{}")
    return merchant_id


def the_delivery() -> uuid.UUID:
    row = one("SELECT id FROM webhook_deliveries")
    assert row is not None
    return uuid.UUID(str(row[0]))


@pytest.mark.parametrize("status", ["pending", "retrying", "delivered", "dead"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_delivery_starts_over_from_every_status(
    shop: uuid.UUID, rung: list[str], status: str, *, is_named: bool
) -> None:
    execute(
        "UPDATE webhook_deliveries SET status = %s, attempts = 7, next_attempt_at = NULL, delivered_at = app_now(),"
        " lease = gen_random_uuid(), leased_until = app_now() + interval '30 s'",
        (status,),
    )

    rung.clear()

    if is_named:
        redelivery.requeue(shop, the_delivery())
    else:
        (object_id,) = one("SELECT object_id FROM webhook_deliveries") or ()
        assert redelivery.requeue_latest(object_id, "invoice.paid")

    row = one("SELECT status, attempts, lease, leased_until, delivered_at FROM webhook_deliveries")
    assert (row, rung) == (("pending", 0, None, None, None), ["deliver_webhooks"])
    assert len(outbox.lease_due(limit=5, per_merchant=5, allowances={}).deliveries) == 1


def test_a_foreign_delivery_is_not_changed(shop: uuid.UUID, rung: list[str]) -> None:
    del shop
    execute("UPDATE webhook_deliveries SET status = 'dead'")
    rung.clear()

    with pytest.raises(WebhookNotFound, match="no such delivery"):
        redelivery.requeue(create_merchant("Other").id, the_delivery())

    assert (one("SELECT status FROM webhook_deliveries"), rung) == (("dead",), [])


def test_a_delivery_without_its_body_is_not_sent_again(shop: uuid.UUID) -> None:
    execute("UPDATE webhook_deliveries SET status = 'dead', body = ''")

    with pytest.raises(WebhookNotFound, match="no longer kept"):
        redelivery.requeue(shop, the_delivery())

    assert one("SELECT status FROM webhook_deliveries") == ("dead",)

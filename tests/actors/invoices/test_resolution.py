"""A webhook sent again is the same webhook: its id and body stay, its attempts start over."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from actors.invoices import resolution as payment_upkeep
from core.errors import PaymentNotFound
from core.secrets.secretbox import SecretBox
from core.settings.settings import load_settings
from models.db.base import execute, rows, transaction
from models.webhooks import outbox
from tests.actors.asking import ask
from tests.api.rows import add_invoice, add_merchant
from tests.models.queue.builders import info

SETTINGS = load_settings(
    {
        "ENVIRONMENT": "development",
        "DATABASE_URL": "postgresql://x@127.0.0.1/x",
        "REDIS_URL": "redis://127.0.0.1",
        "BASE_URL": "http://127.0.0.1",
        "PAY_URL": "http://127.0.0.1",
    }
)


@pytest.fixture
def merchant_id(database: str) -> UUID:
    from actors import context  # noqa: PLC0415

    del database
    context.configure(SETTINGS)
    return add_merchant()


def register(merchant_id: UUID) -> None:
    with transaction():
        outbox.register_endpoint(merchant_id, "https://shop.example/h", box=SecretBox(SETTINGS.secret_keys))


def resend(merchant_id: UUID, invoice_id: UUID) -> list[dict[str, Any]]:
    answer = ask(payment_upkeep.resend_payment, info(merchant_id), {"uuid": str(invoice_id)})
    found: list[dict[str, Any]] = answer["deliveries"]
    return found


def test_a_delivered_webhook_is_queued_again_with_its_id(merchant_id: UUID) -> None:
    register(merchant_id)
    invoice = add_invoice(merchant_id, status="paid", is_final=True)
    with transaction():
        outbox.emit(merchant_id, "invoice.paid", invoice, '{"as":"it was"}')
    execute("UPDATE webhook_deliveries SET status = 'delivered', attempts = 3, next_attempt_at = NULL")

    [queued] = resend(merchant_id, invoice)

    assert (queued["event"], queued["status"]) == ("invoice.paid", "pending")
    assert rows("SELECT id::text, attempts, body, next_attempt_at <= app_now() FROM webhook_deliveries") == [
        (queued["delivery_id"], 0, '{"as":"it was"}', True)
    ]


def test_a_webhook_that_was_never_written_is_written_now(merchant_id: UUID) -> None:
    invoice = add_invoice(merchant_id, status="expired", is_final=True)
    assert resend(merchant_id, invoice) == []

    register(merchant_id)
    [queued] = resend(merchant_id, invoice)

    assert queued["event"] == "invoice.expired"
    [(body,)] = rows("SELECT body FROM webhook_deliveries")
    assert json.loads(body)["uuid"] == str(invoice)


def test_a_payment_without_an_event_has_nothing_to_send(merchant_id: UUID) -> None:
    register(merchant_id)

    assert resend(merchant_id, add_invoice(merchant_id)) == []


def test_a_foreign_payment_is_absent(merchant_id: UUID) -> None:
    with pytest.raises(PaymentNotFound):
        resend(merchant_id, add_invoice(add_merchant("Other"), status="paid", is_final=True))

"""A webhook sent again keeps its id and body and restarts its attempts. E-mails go only to permitted addresses.

Their texts and caps are tested with models.invoices.receipts.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from actors.invoices import resolution
from core.errors import EmailDisabled, EmailNoRecipient, PaymentNotFound
from core.secrets.secretbox import SecretBox
from core.settings.settings import load_settings
from models.db.base import execute, rows, transaction
from models.queue.calls import ReplayedError
from models.webhooks import outbox
from tests.actors.asking import ask
from tests.api.rows import add_invoice, add_merchant
from tests.models.db.collisions import at_once
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
    answer = ask(resolution.resend_payment, info(merchant_id), {"uuid": str(invoice_id)})
    deliveries: list[dict[str, Any]] = answer["deliveries"]
    return deliveries


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


def test_a_webhook_that_was_never_written_is_written(merchant_id: UUID) -> None:
    invoice = add_invoice(merchant_id, status="expired", is_final=True)
    assert resend(merchant_id, invoice) == []

    register(merchant_id)
    [queued] = resend(merchant_id, invoice)

    assert queued["event"] == "invoice.expired"
    [(body,)] = rows("SELECT body FROM webhook_deliveries")
    assert json.loads(body)["uuid"] == str(invoice)


def test_a_payment_without_an_event_has_no_webhook_to_send(merchant_id: UUID) -> None:
    register(merchant_id)

    assert resend(merchant_id, add_invoice(merchant_id)) == []


def test_another_merchants_payment_is_not_found(merchant_id: UUID) -> None:
    with pytest.raises(PaymentNotFound):
        resend(merchant_id, add_invoice(add_merchant("Other"), status="paid", is_final=True))


@pytest.fixture
def post_office(merchant_id: UUID) -> UUID:
    """Let the actors write e-mails."""
    from actors import context  # noqa: PLC0415

    context.configure(SETTINGS.model_copy(update={"smtp_url": "smtp://127.0.0.1:1"}))
    return merchant_id


def send_email(merchant_id: UUID, **body: Any) -> Any:
    return ask(resolution.send_payment_email, info(merchant_id), body)


@pytest.mark.parametrize("email", [None, "bob@mail.example"])
def test_an_email_goes_to_the_named_address_or_the_payer(post_office: UUID, email: str | None) -> None:
    invoice = add_invoice(post_office, payer_email="ann@mail.example", order_id="order-7")

    answer = send_email(post_office, order_id="order-7", email=email)

    recipient = email or "ann@mail.example"
    assert answer == {"email": recipient, "queued": True}
    assert rows("SELECT kind, object_id, recipient, status FROM emails") == [("payment", invoice, recipient, "pending")]


def test_a_call_delivered_twice_writes_one_email(post_office: UUID) -> None:
    invoice = add_invoice(post_office, payer_email="ann@mail.example")
    call = info(post_office)
    body = {"uuid": str(invoice)}

    ask(resolution.send_payment_email, call, body)
    with pytest.raises(ReplayedError):
        ask(resolution.send_payment_email, call, body)

    assert rows("SELECT count(*) FROM emails") == [(1,)]


def test_only_the_merchant_requests_a_payments_email(post_office: UUID) -> None:
    theirs = add_invoice(add_merchant("Other"), payer_email="ann@mail.example")

    with pytest.raises(PaymentNotFound):
        send_email(post_office, uuid=str(theirs))
    with pytest.raises(EmailNoRecipient):
        send_email(post_office, uuid=str(add_invoice(post_office)))

    assert rows("SELECT count(*) FROM emails") == [(0,)]


def test_without_a_mail_server_no_email_is_written(merchant_id: UUID) -> None:
    with pytest.raises(EmailDisabled):
        send_email(merchant_id, uuid=str(add_invoice(merchant_id, payer_email="ann@mail.example")))

    assert rows("SELECT count(*) FROM emails") == [(0,)]


def test_five_emails_an_hour_is_exact_under_concurrent_calls(post_office: UUID) -> None:
    body = {"uuid": str(add_invoice(post_office, payer_email="ann@mail.example"))}

    answers = at_once(9, lambda _: ask(resolution.send_payment_email, info(post_office), body))

    assert sorted(type(answer).__name__ for answer in answers) == ["TooManyRequestsError"] * 4 + ["dict"] * 5
    assert rows("SELECT count(*) FROM emails") == [(5,)]

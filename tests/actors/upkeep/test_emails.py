"""Sends due e-mails, retries them within bounds, and deletes them when they are done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from actors.upkeep import emails as upkeep_emails
from actors.upkeep.emails import deliver_emails
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from core.texts.mail import NOTICE_SUBJECT
from models.db.base import execute, one, rows, transaction
from models.merchants import emails, notices
from tests.actors.payout_links.world import ROTATED_AWAY, configure, create
from tests.models.builders import Chain
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import invoice, paid
from tests.models.payout_links.builders import advance, rich_merchant
from tests.peers.smtp_server import SmtpServer


@pytest.fixture
def peer() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _gateway(database: str, peer: SmtpServer) -> None:
    configure(database, SMTP_URL=peer.url)


@pytest.fixture
def shop() -> UUID:
    return rich_merchant()


def write(merchant_id: UUID, recipient: str = "ann@mail.example", body: bytes = b'{"text":"t","html":"h"}') -> UUID:
    with transaction():
        draft = emails.Draft(object_id=merchant_id, recipient=recipient, subject="S", body=body)
        return emails.add(merchant_id, [draft], kind="cheque", box=SecretBox(DEVELOPMENT_SECRET_KEYS))[0]


def test_a_security_notice_reaches_the_owner_without_a_button(shop: UUID, peer: SmtpServer) -> None:
    with transaction():
        notices.set_address(shop, "owner@mail.example")
        notices.write(shop, "A new API key.", topic="test", by="operator")

    deliver_emails()

    (message,) = peer.messages
    assert (message["To"], message["Subject"]) == ("owner@mail.example", NOTICE_SUBJECT)
    page = message.get_body(("html",))
    assert page is not None
    assert "A new API key." in page.get_content()
    assert "href" not in page.get_content()


def state() -> list[tuple[Any, ...]]:
    return rows("SELECT status, attempts, body_box = '' FROM emails ORDER BY id")


def test_a_cheque_reaches_its_recipient_with_its_button_and_is_deleted(shop: UUID, peer: SmtpServer) -> None:
    link = create(shop, email="ann@mail.example", title="Prize")

    deliver_emails()
    deliver_emails()

    (message,) = peer.messages
    assert (message["To"], message["From"]) == ("ann@mail.example", "no-reply@pay.example")
    assert message["Subject"] == "You have received 25 USDT"
    page = message.get_body(("html",))
    assert page is not None
    assert f'href="{link["claim_url"]}"' in page.get_content()
    assert state() == [("sent", 1, True)]


def test_a_receipt_reaches_the_buyer_as_text_and_html(shop: UUID, peer: SmtpServer, chain: Chain) -> None:
    mine = paid(chain, invoice(shop, payer_email="ann@mail.example", order_id="order-7"))

    deliver_emails()

    (message,) = peer.messages
    assert (message["To"], message["Subject"]) == ("ann@mail.example", "Receipt for 10.00 USD")
    parts = [message.get_body((kind,)) for kind in ("plain", "html")]
    assert all(part is not None and "order-7" in part.get_content() for part in parts)
    assert parts[1] is not None
    assert f'href="https://pay.example/pay/{mine.id}"' in parts[1].get_content()
    assert state() == [("sent", 1, True)]


def test_the_body_is_stored_sealed_until_it_is_sent(shop: UUID) -> None:
    link = create(shop, email="ann@mail.example")

    assert not [row for row in rows("SELECT e::text FROM emails e") if link["claim_token"] in row[0]]


def test_without_a_server_nothing_is_leased(shop: UUID, database: str) -> None:
    write(shop)
    configure(database)

    deliver_emails()

    assert one("SELECT lease FROM emails") == (None,)


def test_attempts_are_spaced_out_and_bounded(shop: UUID, peer: SmtpServer) -> None:
    write(shop)
    peer.answers["RCPT"] = b"450 later"
    for delay_s in emails.DELAYS_S:
        deliver_emails()
        deliver_emails()
        assert one("SELECT next_attempt_at > app_now() + make_interval(secs => %s) FROM emails", (delay_s - 30,)) == (
            True,
        )
        advance(delay_s / 3600 + 0.01)

    assert state() == [("pending", 5, False)]
    deliver_emails()
    assert state() == [("dead", 6, True)]


def test_a_permanently_refused_email_is_not_retried(shop: UUID, peer: SmtpServer) -> None:
    write(shop)
    peer.answers["RCPT"] = b"550 nobody"

    deliver_emails()

    assert state() == [("dead", 1, True)]


def test_one_bad_email_delays_no_other(shop: UUID, peer: SmtpServer) -> None:
    write(shop, body=b"no body")
    write(shop, recipient="two@a.example, three@b.example")
    write(shop)
    execute("UPDATE emails SET body_box = 'development:AAAA' WHERE id = %s", (write(shop),))

    deliver_emails()

    assert state() == [("pending", 1, False), ("dead", 1, True), ("sent", 1, True), ("dead", 1, True)]
    assert len(peer.messages) == 1


def test_an_absent_server_costs_one_email_one_attempt(shop: UUID, database: str) -> None:
    for _ in range(3):
        write(shop)
    configure(database, SMTP_URL="smtp://127.0.0.1:1")

    deliver_emails()

    assert [row[:2] for row in state()] == [("pending", 1), ("pending", 0), ("pending", 0)]
    assert one("SELECT count(*) FROM emails WHERE lease IS NULL AND next_attempt_at > app_now()") == (3,)


def test_a_turn_is_bounded_in_number_and_time(
    shop: UUID, monkeypatch: pytest.MonkeyPatch, peer: SmtpServer, rung: list[str]
) -> None:
    for _ in range(3):
        write(shop)
    rung.clear()
    monkeypatch.setattr(upkeep_emails, "PER_TURN", 2)
    deliver_emails()
    assert (len(peer.messages), rung) == (2, ["deliver_emails"])

    write(shop)
    monkeypatch.setattr(upkeep_emails, "TURN_S", -1.0)
    deliver_emails()

    assert len(peer.messages) == 2
    assert one("SELECT count(*) FROM emails WHERE status = 'pending' AND lease IS NULL") == (2,)


def test_every_merchant_gets_its_turn(shop: UUID) -> None:
    for _ in range(5):
        write(shop)
    other = rich_merchant()
    write(other)

    leased = emails.lease_due(2)

    owners = {one("SELECT merchant_id FROM emails WHERE id = %s", (email.id,)) for email in leased}
    assert owners == {(shop,), (other,)}


def test_concurrent_workers_send_each_email_once(shop: UUID, peer: SmtpServer) -> None:
    for number in range(12):
        write(shop, recipient=f"r{number}@mail.example")

    assert not [error for error in at_once(4, lambda _: deliver_emails()) if error]

    assert sorted(peer.recipients) == sorted({f"r{number}@mail.example" for number in range(12)})


def test_a_worker_whose_lease_ended_records_nothing(shop: UUID) -> None:
    write(shop)
    (first,) = emails.lease_due(9)
    advance(1)
    (second,) = emails.lease_due(9)

    emails.note_failed(first, "late", is_final=True)
    emails.put_back([first], wait_s=60)
    emails.note_sent(first)
    assert state() == [("pending", 0, False)]
    emails.note_sent(second)
    assert state() == [("sent", 1, True)]


def test_an_email_sealed_with_a_dropped_key_is_given_up(shop: UUID, database: str, peer: SmtpServer) -> None:
    write(shop)
    configure(database, SMTP_URL=peer.url, SECRET_KEYS=ROTATED_AWAY)

    deliver_emails()

    assert state() == [("dead", 1, True)]


def test_finished_emails_are_deleted_after_a_month(shop: UUID) -> None:
    write(shop)
    deliver_emails()
    waiting = write(shop)
    execute("UPDATE emails SET next_attempt_at = app_now() + interval '60 days' WHERE id = %s", (waiting,))
    advance(31 * 24)
    write(shop)
    deliver_emails()

    assert emails.prune(limit=1_000) == 1
    assert state() == [("pending", 0, False), ("sent", 1, True)]

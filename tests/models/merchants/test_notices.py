"""An owner gets a notice of each change of payout settings, at once or gathered, with a cap and no other recipient."""

from __future__ import annotations

import base64
from datetime import datetime
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from models.db.base import app_now, execute, one, rows, transaction
from models.merchants import emails, notices
from models.merchants import rows as merchants
from models.merchants.emails import EmailRow, Post
from models.merchants.notices import CHANGES_MAX, PAUSE_S
from models.outcomes import disowned
from tests.actors.payouts.withdrawals import add_key
from tests.models.builders import CATALOGUE, merchant

BOX = SecretBox(DEVELOPMENT_SECRET_KEYS)
OWNER = "owner@mail.example"


@pytest.fixture
def shop(database: str, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """Make a merchant whose owner has an address; other mailboxes get one e-mail a day."""
    del database
    post = Post(box=BOX, pay_url="https://pay.example", recipient_day_max=1, merchant_day_max=1)
    monkeypatch.setattr("models.merchants.emails._Process.post", post)
    shop = merchant()
    with transaction():
        notices.set_address(shop, OWNER)
    return shop


def allow(monkeypatch: pytest.MonkeyPatch, *, recipient_day_max: int) -> None:
    """Set the daily cap of notices to one mailbox, beyond those that are a pause apart."""
    used = emails._Process.post
    assert used is not None
    monkeypatch.setattr("models.merchants.emails._Process.post", used._replace(recipient_day_max=recipient_day_max))


def write(shop: UUID, *changes: str, topic: str = "test") -> None:
    for change in changes:
        with transaction():
            notices.write(shop, change, topic=topic, by="pk_test")


def written() -> list[tuple[str, str, datetime]]:
    """Return all e-mails, oldest first: recipient, text, due time."""
    read_rows = EmailRow.read("true ORDER BY e.id")
    return [(e.recipient, notices._decode.decode(e.open(BOX)).text, e.next_attempt_at) for e in read_rows]


def later(seconds: int) -> None:
    """Make all e-mails older and mark those due by then as sent."""
    execute(
        "UPDATE emails SET created_at = created_at - make_interval(secs => %(s)s),"
        " next_attempt_at = next_attempt_at - make_interval(secs => %(s)s)",
        {"s": seconds},
    )
    execute("UPDATE emails SET status = 'sent', attempts = 1 WHERE next_attempt_at <= app_now()")


def test_the_first_notice_is_due_at_once_and_later_changes_are_gathered(shop: UUID) -> None:
    write(shop, "The first <change>.\r\nX: y")

    [(recipient, text, due_at)] = written()
    assert (recipient, due_at <= app_now()) == (OWNER, True)
    assert "by pk_test\nThe first <change>. X: y\n" in text
    [email] = EmailRow.read("true")
    assert "&lt;change&gt;" in notices._decode.decode(email.open(BOX)).html

    later(0)
    write(shop, "The second.", "The third.")

    _, (_, text, due_at) = written()
    assert "The second." in text
    assert "The third." in text
    assert PAUSE_S - 60 < (due_at - app_now()).total_seconds() <= PAUSE_S
    later(PAUSE_S)
    write(shop, "The fourth.")
    assert PAUSE_S - 60 < (written()[2][2] - app_now()).total_seconds() <= PAUSE_S, "one pause after each"
    later(2 * PAUSE_S)
    write(shop, "The fifth.")
    assert written()[3][2] <= app_now()


def test_a_full_email_is_followed_by_another(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given room for three e-mails; when a thief makes two e-mails' worth of changes more; then none is hidden."""
    allow(monkeypatch, recipient_day_max=3)
    write(shop, "The address is a thief's.", *(f"Change {number}." for number in range(2 * CHANGES_MAX)))

    texts, due = [text for _, text, _ in written()], {due_at for _, _, due_at in written()}
    assert [text.count("by pk_test") for text in texts] == [CHANGES_MAX, CHANGES_MAX, 1]
    assert "a thief's" in texts[0]
    assert "left out" not in "".join(texts)
    assert len(due) == 1, "all are due together"


def test_above_the_cap_the_last_email_counts_the_rest_and_names_the_place_to_look(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, recipient_day_max=2)
    write(shop, *(f"Change {number}." for number in range(2 * CHANGES_MAX + 2)))

    first, last = (text for _, text, _ in written())
    assert [first.count("by pk_test"), last.count("by pk_test")] == [CHANGES_MAX, CHANGES_MAX]
    kept = [f"Change {number}." in last for number in (50, 51, 52, 2 * CHANGES_MAX + 1)]
    assert kept == [False, False, True, True]
    assert "left out" not in first
    assert "2 more changes of this time are left out" in last
    assert "/v1/auto-withdraw" in last


def test_each_mailbox_has_its_own_cap(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, recipient_day_max=2)
    write(shop, "A change.")
    later(0)
    write(shop, "Another change.")
    later(PAUSE_S)
    with transaction():
        notices.set_address(shop, "new@mail.example")
    write(shop, *(f"Change {number}." for number in range(CHANGES_MAX + 1)))

    assert [text.count("by pk_test") for who, text, _ in written() if who != OWNER] == [CHANGES_MAX, 1]


def test_many_changes_of_one_kind_hide_none_of_another(shop: UUID) -> None:
    write(shop, "The address is a thief's.", topic="address")
    write(shop, *(f"Change {number}." for number in range(CHANGES_MAX)))
    write(shop, "A key is new.", topic="keys")
    write(shop, *(f"Another change {number}." for number in range(CHANGES_MAX)))

    [(_, text, _)] = written()
    assert text.count("by pk_test") == CHANGES_MAX
    assert ("a thief's" in text, "A key is new." in text) == (True, True)


def test_a_key_is_revoked_even_if_the_waiting_notice_cannot_be_opened(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shop, "The first.")
    later(0)
    key = "pk_" + "a" * 24
    add_key(shop, key)
    dropped = SecretBox(f"dropped:{base64.b64encode(bytes(32)).decode()}")
    used = emails._Process.post
    assert used is not None
    monkeypatch.setattr("models.merchants.emails._Process.post", used._replace(box=dropped))
    write(shop, "Sealed with a key that the operator drops.")
    monkeypatch.setattr("models.merchants.emails._Process.post", used)

    with capture_logs() as logs:
        assert disowned.revoke(CATALOGUE, key).was_active
        write(shop, "Another change.")

    assert merchants.find_key(key) is None
    _, closed, opened = EmailRow.read("true ORDER BY e.id")
    text = notices._decode.decode(opened.open(BOX)).text
    assert [part in text for part in (f"{key} is revoked", "Another change.", "cannot be read")] == [True] * 3
    assert opened.next_attempt_at == closed.next_attempt_at, "due when the other was"
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("notice.not_opened", "error"), ("key.revoked", "warning"),
    ]  # fmt: skip


def test_a_notice_being_sent_is_not_changed(shop: UUID) -> None:
    write(shop, "The first.")
    emails.lease_due(1)

    write(shop, "The second.")

    assert ["The second" in text for _, text, _ in written()] == [False, True]


def test_caps_of_other_emails_neither_delay_nor_count_notices(shop: UUID) -> None:
    write(shop, "A change.")
    draft = emails.Draft(object_id=shop, recipient=OWNER, subject="S", body=b"{}")
    with transaction():
        assert len(emails.add(shop, [draft], kind="cheque", box=BOX)) == 1
        assert emails.add(shop, [draft], kind="cheque", box=BOX) == []
    later(0)

    write(shop, "Another one.")

    assert rows("SELECT kind FROM emails ORDER BY id") == [("notice",), ("cheque",), ("notice",)]


def test_the_former_address_gets_a_notice_of_the_new_one(shop: UUID) -> None:
    for _ in range(2):
        with transaction():
            notices.set_address(shop, "thief@mail.example")
    write(shop, "A change.")
    with transaction():
        notices.set_address(shop, None)
    write(shop, "Not told.")

    (first, text, _), (second, _, _) = written()
    assert (first, second) == (OWNER, "thief@mail.example")
    assert "go to another address" in text
    assert text.count("go to another address") == 1
    assert one("SELECT count(*) FROM owner_emails") == (0,)


def test_no_notice_is_written_without_address_mail_server_or_transaction(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError):
        notices.write(shop, "A change.", topic="test", by="pk_test")
    write(merchant(), "A change.")
    monkeypatch.setattr("models.merchants.emails._Process.post", None)
    write(shop, "A change.")

    assert written() == []


def test_changes_of_many_kinds_do_not_hide_the_first(shop: UUID) -> None:
    write(shop, "The address is a thief's.", topic="address")
    for number in range(2 * CHANGES_MAX):
        write(shop, f"Change {number}.", topic=f"kind {number}")

    [(_, text, _)] = written()
    assert text.count("by pk_test") == CHANGES_MAX
    assert "a thief's" in text

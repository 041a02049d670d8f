"""E-mails have their text, no injected header, and leave by the operator's server."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from uuid import UUID

import pytest

from actors.upkeep import mail_server
from actors.upkeep.mail_server import MailServer, MailServerError
from core.texts import mail
from core.texts.letters import Body
from core.texts.mail import MailRefusedError
from tests.peers.smtp_server import SmtpServer, certify

ID = UUID("0190b3c6-5a3e-7cc0-9d5e-8f6f1a2b3c4d")
BODY = Body(text="Hello", html="<p>Hello</p>")
URL = "https://pay.example/claim/" + "A" * 43


def message(recipient: str = "ann@mail.example", subject: str = "Hello") -> EmailMessage:
    return mail.compose(ID, sender="no-reply@pay.example", recipient=recipient, subject=subject, body=BODY)


def cheque(**texts: str) -> Body:
    given = {"sender": "Shop", "title": "Prize", "note": "Well done", "until": "1 May 2026, 12:00 UTC"} | texts
    return mail.cheque_body(amount="25", currency="USDT", network_name="Ethereum", claim_url=URL, **given)


def send(peer: SmtpServer, *messages: EmailMessage, login: str = "", context: object = None) -> None:
    url = peer.url.replace("://", f"://{login}")
    with MailServer(url, helo="pay.example", context=context) as server:  # type: ignore[arg-type]
        for one in messages:
            server.send(one)


# Text -------------------------------------------------------------------------------------------------------


def test_a_cheques_email_names_sender_amount_link_and_expiry() -> None:
    body = cheque()

    for text in ("Shop", "25 USDT on Ethereum", "Prize", "Well done", URL, "1 May 2026"):
        assert text in body.text
        assert text in body.html
    assert mail.cheque_subject("25", "USDT") == "You have received 25 USDT"


def test_a_merchants_text_is_sent_as_plain_text() -> None:
    script = '"><script>alert(1)</script><a href="https://evil.example">'
    body = cheque(sender=script, title=script, note=script + "\nsecond line")

    assert "<script" not in body.html
    assert body.html.count("<a ") == 1
    assert body.html.count("&lt;script&gt;") == 3
    assert "<br>second line" in body.html


def test_control_characters_and_direction_marks_are_left_out() -> None:
    body = cheque(note="a\x1b[31mb\u202ec\x00d\te")

    assert "a[31mbcd\te" in body.text


# Headers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recipient",
    [
        "ann@mail.example\r\nBcc: all@mail.example",
        "ann@mail.example\nBcc: all@mail.example",
        "ann@mail.example, bob@mail.example",
        "Ann <ann@mail.example>",
        "ann",
        "",
        "ann@",
        "@mail.example",
        "ann@" + "ä" * 300,
        # Encoded words, which a mail program decodes.
        "ann@=?utf-8?q?mail=2Eexample=2C_bob=40mail=2Eexample?=",
        "ann@=?utf-8?q?mail=2Eexample?=",
        "=?utf-8?q?ann=40mail=2Eexample=2C_bob?=@mail.example",
    ],
)
def test_several_recipients_are_refused_permanently(recipient: str) -> None:
    with pytest.raises(MailRefusedError) as refusal:
        message(recipient)
    assert refusal.value.is_final


def test_a_subject_cannot_inject_a_header() -> None:
    with pytest.raises(MailRefusedError):
        message(subject="Hello\r\nBcc: all@mail.example")


def test_an_email_has_the_same_id_at_each_attempt_and_an_ascii_domain() -> None:
    one = message("ann@bücher.example")

    assert one["To"] == "ann@xn--bcher-kva.example"
    assert one["Message-ID"] == f"<{ID}@pay.example>"
    assert one["Auto-Submitted"] == "auto-generated"


# The server -------------------------------------------------------------------------------------------------


def test_emails_are_sent_unchanged_over_one_session() -> None:
    body = cheque(note="grüße " * 300)
    with SmtpServer() as peer:
        send(peer, message(), mail.compose(ID, sender="a@b.example", recipient="c@d.example", subject="S", body=body))

    assert (peer.sessions, peer.recipients) == (1, ["ann@mail.example", "c@d.example"])
    plain, page = (peer.messages[1].get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert page is not None
    assert plain.get_content().replace("\r\n", "\n") == body.text
    assert page.get_content().replace("\r\n", "\n").strip() == body.html


def test_offered_starttls_is_used_and_verified(tmp_path: Path) -> None:
    server, client = certify(tmp_path)
    with SmtpServer(tls=server) as peer:
        send(peer, message(), login="ann:secret@", context=client)
        assert (peer.secured, peer.logins, len(peer.messages)) == (1, 1, 1)

        with pytest.raises(MailServerError):
            send(peer, message(), login="ann:secret@")
        assert (peer.logins, len(peer.messages)) == (1, 1)


def test_implicit_tls_is_verified(tmp_path: Path) -> None:
    server, client = certify(tmp_path)
    with SmtpServer(tls=server, is_tls_from_start=True) as peer:
        send(peer, message(), context=client)
        with pytest.raises(MailServerError):
            send(peer, message())
        assert len(peer.messages) == 1


def test_a_password_is_sent_only_over_tls_except_to_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with SmtpServer() as peer:
        send(peer, message(), login="ann:secret@")
        monkeypatch.setattr(mail_server, "_is_loopback", lambda _: False)
        with pytest.raises(MailServerError, match="no TLS"):
            send(peer, message(), login="ann:secret@")
        assert (peer.logins, len(peer.messages)) == (1, 1)


def test_loopback_is_recognised_by_address() -> None:
    assert [
        host for host in ("127.0.0.1", "::1", "localhost", "mail.example", "10.0.0.1") if mail_server._is_loopback(host)
    ] == [
        "127.0.0.1",
        "::1",
        "localhost",
    ]


@pytest.mark.parametrize(
    ("verb", "answer", "is_final"),
    [
        ("RCPT", b"550 no such user", True),
        ("RCPT", b"450 later", False),
        (".", b"554 spam", True),
        (".", b"451 later", False),
        ("MAIL", b"550 not from you", False),
        ("DATA", b"", False),
    ],
)
def test_a_refused_email_does_not_stop_the_others(verb: str, answer: bytes, is_final: bool) -> None:  # noqa: FBT001
    with SmtpServer(answers={verb: answer}) as peer, MailServer(peer.url, helo="pay.example") as server:
        with pytest.raises(MailRefusedError) as refusal:
            server.send(message())
        assert refusal.value.is_final == is_final
        assert "ann@" not in str(refusal.value)
        peer.answers.clear()

        server.send(message())

        assert len(peer.messages) == 1


def test_an_unreachable_server_and_a_refused_login_raise_different_errors() -> None:
    with SmtpServer() as peer:
        url = peer.url
    with pytest.raises(MailServerError), MailServer(url, helo="pay.example") as server:
        server.send(message())
    with SmtpServer(answers={"AUTH": b"535 who are you"}) as peer, pytest.raises(MailServerError) as refusal:
        send(peer, message(), login="ann:secret@")
    assert "secret" not in str(refusal.value)


def test_user_and_password_may_be_percent_encoded() -> None:
    server = MailServer("smtps://a%40b:p%2Fw@mail.example", helo="x")

    assert (server._user, server._password, server._host, server._port) == ("a@b", "p/w", "mail.example", 465)
    assert MailServer("smtp://mail.example", helo="x")._port == 587

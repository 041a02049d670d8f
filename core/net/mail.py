"""Composes e-mails and hands them to the operator's mail server. Used by actors: composed with a cheque, sent later.

Nothing that a merchant wrote stands in a header; in the body it is escaped. TLS is verified; smtps:// has it from the
start, smtp:// takes it where the server offers it, and no password is sent to another machine without it.
"""

from __future__ import annotations

import html
import smtplib
import ssl
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE_POLICY
from email.utils import localtime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from types import TracebackType
    from uuid import UUID

TIMEOUT_S: Final = 10.0
_PORTS: Final = {"smtp": 587, "smtps": 465}
_PERMANENT: Final = range(500, 600)
_KEPT_CONTROLS: Final = "\n\t"


class MailServerError(Exception):
    """The server cannot be reached, or not safely, or does not know us: the next e-mail would fare no better."""


class MailRefusedError(Exception):
    """The server did not take this e-mail. is_final: nor will it ever."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What an e-mail says, as text and as HTML."""

    text: str
    html: str


def cheque_subject(amount: str, currency: str) -> str:
    """Return the subject of the e-mail that brings a cheque."""
    return f"You have received {amount} {currency}"


def cheque_body(
    *, amount: str, currency: str, network_name: str, sender: str, title: str, note: str, until: str, claim_url: str
) -> Body:
    """Return the e-mail that brings a cheque. until: a moment, as text; claim_url holds the token."""
    said = [clean(part) for part in (title, note) if part]
    what = f"{amount} {currency} on {network_name}"
    lines = [f"{clean(sender)} sent you {what}.", *said, f"To receive it, open this link before {until}:", claim_url]
    lines.append("Whoever has this link can have the money: do not pass it on.")
    return Body(text="\n\n".join(lines) + "\n", html=_cheque_html(clean(sender), what, said, until, claim_url))


def clean(text: str) -> str:
    """Return a text without control characters, and without those that turn the direction of what follows."""
    return "".join(char for char in text if char in _KEPT_CONTROLS or (char.isprintable() or char == " "))


def _cheque_html(sender: str, what: str, said: list[str], until: str, claim_url: str) -> str:
    def paragraph(text: str) -> str:
        shown = html.escape(text).replace("\n", "<br>")
        return f'<p style="margin:0 0 16px;overflow-wrap:anywhere" dir="auto">{shown}</p>'

    button = (
        "display:inline-block;padding:12px 20px;border-radius:10px;background:#0f6f8f;color:#ffffff;"
        "text-decoration:none;font-weight:600"
    )
    return (
        '<!doctype html><html lang="en"><body style="margin:0;padding:24px;background:#f3f5f7;color:#17212b;'
        'font:16px/1.5 system-ui,sans-serif"><div style="max-width:480px;margin:0 auto;padding:24px;background:#ffffff;'
        'border:1px solid #d9e0e6;border-radius:14px">'
        + paragraph(f"{sender} sent you {what}.")
        + "".join(map(paragraph, said))
        + f'<p style="margin:0 0 16px"><a style="{button}" href="{html.escape(claim_url)}">Claim it</a></p>'
        + paragraph(f"Open until {until}. Whoever has this link can have the money: do not pass it on.")
        + "</div></body></html>"
    )


def compose(email_id: UUID, *, sender: str, recipient: str, subject: str, body: Body) -> EmailMessage:
    """Return an e-mail ready to be sent; the same id on every attempt. Raises MailRefusedError for a bad recipient."""
    message = EmailMessage(policy=WIRE_POLICY)
    try:
        # These refuse whatever would begin another header, or another recipient.
        message["From"] = Address(addr_spec=sender)
        message["To"] = Address(addr_spec=_wire_address(recipient))
        message["Subject"] = subject
        message["Message-ID"] = f"<{email_id}@{sender.rpartition('@')[2]}>"
    except (ValueError, IndexError, MessageError) as error:
        raise MailRefusedError(f"the address cannot be written: {type(error).__name__}", is_final=True) from error
    message["Date"] = localtime()
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body.text)
    message.add_alternative(body.html, subtype="html")
    return message


def _wire_address(address: str) -> str:
    """Return an address with its domain as DNS writes it. Raises UnicodeError."""
    local, _, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local}@{domain.encode('idna').decode('ascii')}"


class MailServer:
    """A session with the operator's mail server, opened by the first e-mail. Not for several threads at once."""

    def __init__(self, smtp_url: str, *, helo: str, context: ssl.SSLContext | None = None) -> None:
        """Take SMTP_URL; helo: our name. context: which certificates are believed; the system's without it."""
        parts = urlsplit(smtp_url)
        self._is_tls = parts.scheme == "smtps"
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._user, self._password = unquote(parts.username or ""), unquote(parts.password or "")
        self._helo = helo
        self._context = context or ssl.create_default_context()
        self._session: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def send(self, message: EmailMessage) -> None:
        """Hand one e-mail over. Raises MailServerError and MailRefusedError; neither quotes the message."""
        session = self._open()
        try:
            session.send_message(message)
        except smtplib.SMTPRecipientsRefused as refusal:
            code = next(iter(refusal.recipients.values()))[0]
            raise MailRefusedError(f"the recipient was refused: {code}", is_final=code in _PERMANENT) from refusal
        except (smtplib.SMTPNotSupportedError, UnicodeError) as refusal:
            raise MailRefusedError("the server takes no such address", is_final=True) from refusal
        except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as refusal:
            self._close()
            code = refusal.smtp_code
            is_final = code in _PERMANENT and isinstance(refusal, smtplib.SMTPDataError)
            raise MailRefusedError(f"the e-mail was refused: {code}", is_final=is_final) from refusal
        except (OSError, smtplib.SMTPException) as error:
            # Perhaps because of this very e-mail; whether the server is there shows when the next one opens a session.
            self._close()
            raise MailRefusedError(f"the session broke: {type(error).__name__}", is_final=False) from error

    def _open(self) -> smtplib.SMTP:
        if self._session is None:
            try:
                self._session = self._connect()
            except (OSError, smtplib.SMTPException) as error:
                raise MailServerError(f"the server cannot be used: {type(error).__name__}") from error
        return self._session

    def _connect(self) -> smtplib.SMTP:
        session: smtplib.SMTP
        if self._is_tls:
            session = smtplib.SMTP_SSL(
                self._host, self._port, local_hostname=self._helo, timeout=TIMEOUT_S, context=self._context
            )
        else:
            session = smtplib.SMTP(self._host, self._port, local_hostname=self._helo, timeout=TIMEOUT_S)
        try:
            is_secure = self._is_tls or self._start_tls(session)
            if self._user:
                if not is_secure and not _is_loopback(self._host):
                    raise MailServerError("the server offers no TLS, and a password is not sent without it")
                session.login(self._user, self._password)
        except BaseException:
            session.close()
            raise
        return session

    def _start_tls(self, session: smtplib.SMTP) -> bool:
        session.ehlo_or_helo_if_needed()
        if not session.has_extn("starttls"):
            return False
        session.starttls(context=self._context)
        session.ehlo()
        return True

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(OSError, smtplib.SMTPException):
                session.quit()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Hands e-mails to the operator's mail server. Used by actors.upkeep.emails.

TLS is verified: smtps:// uses it from the start, smtp:// if the server offers it. Without TLS no password is sent to
another machine.
"""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from core.texts.mail import MailRefusedError

TIMEOUT_S: Final = 10.0
_PORTS: Final = {"smtp": 587, "smtps": 465}
_PERMANENT: Final = range(500, 600)


class MailServerError(Exception):
    """The server cannot be reached, or not safely, or rejects our login: the next e-mail would fail too."""


class MailServer:
    """A session with the operator's mail server, opened by the first e-mail. Not for several threads at once."""

    def __init__(self, smtp_url: str, *, helo: str, context: ssl.SSLContext | None = None) -> None:
        """Read SMTP_URL. helo: our name. context: the trusted certificates; by default the system's."""
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
            # This very e-mail may be the cause; the next one's new session shows whether the server is available.
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

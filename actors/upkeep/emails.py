"""Sends waiting e-mails, as far as possible. Notified after e-mails are written, and by the scheduler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from actors.context import context
from actors.queue.broker import doorbell, ring
from actors.upkeep.mail_server import MailServer, MailServerError
from core.secrets.secretbox import SecretBox, SecretBoxError
from core.settings.settings import Settings
from core.texts import mail
from core.texts.letters import Body
from core.texts.mail import MailRefusedError
from models.db.base import StoreUnavailableError, in_transaction
from models.merchants import emails
from models.merchants.emails import EmailRow

log = structlog.get_logger()

# A turn is bounded in number and time; with a slow server it ends within a lease.
PER_TURN: Final = 20
TURN_S: Final = 120.0
_decode_body: Final = msgspec.json.Decoder(Body)


@doorbell(queue="emails")
def deliver_emails() -> None:
    """Send some due e-mails; notify itself again after a full turn."""
    settings = context().settings
    if settings.smtp_url is None:
        return
    due = emails.lease_due(PER_TURN)
    if not due:
        return
    if in_transaction():
        raise RuntimeError("no network call inside a transaction")
    sent = Turn(settings).send(due)
    if sent == PER_TURN:
        ring("deliver_emails")


class Turn:
    """Sends some e-mails, one after the other, over as few sessions as possible."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.smtp_url or ""
        self._sender = settings.mail_sender
        self._box = SecretBox(settings.secret_keys)

    def send(self, due: Sequence[EmailRow]) -> int:
        """Send e-mails for up to TURN_S and put the rest back; return the number attempted."""
        until = time.monotonic() + TURN_S
        with MailServer(self._url, helo=self._sender.rpartition("@")[2]) as server:
            for number, email in enumerate(due):
                if time.monotonic() > until:
                    emails.put_back(due[number:], wait_s=0)
                    return number
                try:
                    self._send_one(server, email)
                except MailServerError as error:
                    log.warning("email.server_failed", problem=str(error))
                    emails.note_failed(email, str(error), is_final=False)
                    # Nothing is known against these: the server's absence does not use up their attempts.
                    emails.put_back(due[number + 1 :], wait_s=emails.DELAYS_S[0], error=str(error))
                    return number
        return len(due)

    def _send_one(self, server: MailServer, email: EmailRow) -> None:
        try:
            body = _decode_body.decode(email.open(self._box))
            message = mail.compose(
                email.id, sender=self._sender, recipient=email.recipient, subject=email.subject, body=body
            )
            server.send(message)
        except (MailRefusedError, SecretBoxError) as refusal:
            is_final = isinstance(refusal, SecretBoxError) or refusal.is_final
            log.warning("email.refused", email_id=str(email.id), problem=str(refusal), is_final=is_final)
            emails.note_failed(email, str(refusal), is_final=is_final)
        except (MailServerError, StoreUnavailableError):
            raise
        except Exception as error:
            # A broken e-mail is not tried for ever, and the others have their turn.
            log.exception("email.failed", email_id=str(email.id))
            emails.note_failed(email, type(error).__name__, is_final=False)
        else:
            emails.note_sent(email)

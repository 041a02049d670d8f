"""Composes e-mails. Used by actors: composed with a cheque, handed over later (actors.upkeep.mail_server).

Nothing that a merchant wrote stands in a header; in the body it is escaped.
"""

from __future__ import annotations

import html
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE_POLICY
from email.utils import localtime
from typing import Final
from uuid import UUID

import msgspec

_KEPT_CONTROLS: Final = "\n\t"


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

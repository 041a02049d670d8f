"""Composes e-mails: the texts for cheques and security notices, and the bytes that actors.upkeep.mail_server sends.

A merchant's text is never part of a header; in the body it is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE_POLICY
from email.utils import localtime
from typing import Final
from uuid import UUID

import msgspec

from core.texts.letters import Body, Letter, laid_out, one_line

NOTICE_SUBJECT: Final = "Security notice: changes at your shop"
_WHERE_TO_LOOK: Final = (
    "read the shop's rules as they are now, with /v1/auto-withdraw, /v1/split/rule/list, /v1/split/config/get"
    " and /v1/ip-allowlist, and register its webhook endpoint again."
)


class MailRefusedError(Exception):
    """The server did not take this e-mail. is_final: nor will it ever."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final


def cheque_subject(amount: str, currency: str) -> str:
    """Return the subject of the e-mail that brings a cheque."""
    return f"You have received {amount} {currency}"


def cheque_body(
    *, amount: str, currency: str, network_name: str, sender: str, title: str, note: str, until: str, claim_url: str
) -> Body:
    """Return the e-mail that brings a cheque. until: a moment, as text; claim_url holds the token."""
    return laid_out(
        Letter(
            lead=f"{sender} sent you {amount} {currency} on {network_name}.",
            paragraphs=tuple(part for part in (title, note) if part),
            button="Claim it",
            url=claim_url,
            closing=f"Open until {until}. Whoever has this link can have the money: do not pass it on.",
        )
    )


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a security notice names: when, by which principal, and what, as text."""

    at: str
    by: str
    text: str
    # Changes of one topic leave no room for themselves at another's cost.
    topic: str = ""


def notice_body(merchant: str, changes: Sequence[Change], *, left_out: int) -> Body:
    """Return the e-mail about changes of who can move a merchant's money, or where it goes."""
    paragraphs = [f"{change.at}, by {change.by}\n{one_line(change.text)}" for change in changes]
    if left_out:
        paragraphs.append(f"{left_out} more changes of this time are left out: {_WHERE_TO_LOOK}")
    return laid_out(
        Letter(
            lead=f"Changes at {merchant}:",
            paragraphs=tuple(paragraphs),
            closing="If you did not expect a change, ask the operator of your gateway to revoke the key that made it.",
        )
    )


def compose(email_id: UUID, *, sender: str, recipient: str, subject: str, body: Body) -> EmailMessage:
    """Return an e-mail ready to be sent; the same id on every attempt. Raises MailRefusedError for a bad recipient."""
    message = EmailMessage(policy=WIRE_POLICY)
    try:
        wire_address = _wire_address(recipient)
        # These refuse whatever would begin another header, or another recipient.
        message["From"] = Address(addr_spec=sender)
        message["To"] = Address(addr_spec=wire_address)
        message["Subject"] = subject
        message["Message-ID"] = f"<{email_id}@{sender.rpartition('@')[2]}>"
    except (ValueError, IndexError, MessageError) as error:
        raise MailRefusedError(f"the address cannot be written: {type(error).__name__}", is_final=True) from error
    # The header decodes what looks like an encoded word, perhaps into several recipients.
    if str(message["To"]) != wire_address:
        raise MailRefusedError("the address is more than one, or another", is_final=True)
    message["Date"] = localtime()
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body.text)
    message.add_alternative(body.html, subtype="html")
    return message


def _wire_address(address: str) -> str:
    """Return an address with its domain as DNS writes it. Raises UnicodeError."""
    local, _, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local}@{domain.encode('idna').decode('ascii')}"

"""Writes security notices: e-mails to a merchant's owner about changes of who can move money, or where it goes.

Called in the transactions of the changes; actors.upkeep.emails sends. The first notice is due at once. Changes of the
next PAUSE_S are gathered in one e-mail, so that repeated changes flood no owner, and no cap of a day silences them.
Another e-mail begins when one is full, up to the recipient's cap of a day.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
import structlog

from core.secrets.secretbox import SecretBoxError
from core.texts import mail
from core.texts.letters import Body
from core.texts.mail import Change
from models.db import locks
from models.db.base import app_now, execute, in_transaction, value
from models.db.locks import LockSeed
from models.merchants import emails
from models.merchants import rows as merchants
from models.merchants.emails import EmailRow, Post

log = structlog.get_logger()

PAUSE_S: Final = 900
# An e-mail names as many changes. The last one that the recipient's cap allows counts those that do not fit: the oldest
# of the topic that has the most, so that changes of one kind do not hide another's.
CHANGES_MAX: Final = 50
_LOST: Final = "Changes before these cannot be read any more: the gateway's key for them was dropped."


class _Content(Body, frozen=True, kw_only=True):
    """An e-mail's body with what it was made of, so that a change can be added."""

    changes: list[Change]
    left_out: int = 0


_decode: Final = msgspec.json.Decoder(_Content)


def write(merchant_id: UUID, change: str, *, topic: str, by: str) -> None:
    """Write or extend the notice about a change, in the caller's transaction. by: the principal.

    topic: the kind of the change, with its coin or recipient where it has one. Not to be called where nothing changed.
    Does nothing where the gateway sends no e-mail, or the owner has no address. Takes a lock of the merchant's notices
    until the transaction ends: call it last.
    """
    if not in_transaction():
        raise RuntimeError("a notice is written in the transaction of its change")
    post, recipient = emails.post(), _recipient(merchant_id)
    if post is None or recipient is None:
        return
    locks.wait_turn(str(merchant_id), seed=LockSeed.NOTICES)
    new = Change(at=f"{app_now():%d %B %Y, %H:%M:%S} UTC", by=by, text=change, topic=topic)
    waiting = EmailRow.first(
        "e.merchant_id = %s AND e.kind = 'notice' AND e.recipient = %s AND e.status = 'pending' AND e.attempts = 0"
        " AND e.lease IS NULL ORDER BY e.id DESC LIMIT 1 FOR UPDATE",
        (merchant_id, recipient),
    )
    if waiting is None:
        _start(merchant_id, recipient, [new], post, due_at=_due_at(merchant_id))
    else:
        _extend(waiting, new, post)


def set_address(merchant_id: UUID, address: str | None) -> None:
    """Set where the notices of a merchant's owner go; None ends them. The address before gets the last one.

    Inside the caller's transaction. Raises merchants.UnknownMerchantError.
    """
    merchants.check_exists(merchant_id)
    if address == _recipient(merchant_id):
        return
    write(merchant_id, "Security notices go to another address, or end.", topic="address", by="operator")
    merchants.note_changed(merchant_id, "owner_email")
    owner_id = value("SELECT owner_id FROM merchants WHERE id = %s", (merchant_id,))
    execute("DELETE FROM owner_emails WHERE owner_id = %s", (owner_id,))
    if address is not None:
        merchants.OwnerEmail(owner_id=owner_id, email=address).write()


def _recipient(merchant_id: UUID) -> str | None:
    email: str | None = value(
        "SELECT o.email FROM owner_emails o JOIN merchants m ON m.owner_id = o.owner_id WHERE m.id = %s", (merchant_id,)
    )
    return email


def _start(merchant_id: UUID, recipient: str, changes: list[Change], post: Post, *, due_at: datetime) -> None:
    content = _content(merchant_id, changes, left_out=0)
    emails.add_uncapped(
        merchant_id, recipient, subject=mail.NOTICE_SUBJECT, body=content, kind="notice", due_at=due_at, box=post.box
    )


def _due_at(merchant_id: UUID) -> datetime:
    due_at: datetime = value(
        "SELECT GREATEST(app_now(), (SELECT GREATEST(created_at, next_attempt_at) + make_interval(secs => %s)"
        " FROM emails WHERE merchant_id = %s AND kind = 'notice' ORDER BY id DESC LIMIT 1))",
        (PAUSE_S, merchant_id),
    )
    return due_at


def _extend(waiting: EmailRow, change: Change, post: Post) -> None:
    try:
        before = _decode.decode(waiting.open(post.box))
    except SecretBoxError:
        # The change goes through: it may be the revocation of a key.
        log.exception("notice.not_opened", merchant_id=str(waiting.merchant_id), email_id=str(waiting.id))
        lost = Change(at=change.at, by="gateway", text=_LOST)
        _start(waiting.merchant_id, waiting.recipient, [lost, change], post, due_at=waiting.next_attempt_at)
        return
    if len(before.changes) >= CHANGES_MAX and emails.allows_notice(waiting.merchant_id, waiting.recipient):
        _start(waiting.merchant_id, waiting.recipient, [change], post, due_at=waiting.next_attempt_at)
        return
    changes = [*before.changes, change]
    is_full = len(changes) > CHANGES_MAX
    if is_full:
        # Of topics of equal count the newest: a series of changes does not push out the first.
        [(crowd, _)] = Counter(each.topic for each in reversed(changes)).most_common(1)
        changes.remove(next(each for each in changes if each.topic == crowd))
    content = _content(waiting.merchant_id, changes, left_out=before.left_out + is_full)
    emails.rewrite(waiting, content, box=post.box)


def _content(merchant_id: UUID, changes: list[Change], *, left_out: int) -> bytes:
    body = mail.notice_body(merchants.name_of(merchant_id), changes, left_out=left_out)
    return msgspec.json.encode(_Content(text=body.text, html=body.html, changes=changes, left_out=left_out))

"""Keeps e-mails that wait to be sent, best effort: to merchants' buyers and recipients, and to their owners.

Written in the transaction of their subject (cheques, models.invoices.receipts, models.merchants.notices).
actors.upkeep.emails leases and sends them.
An e-mail is pending, then sent or dead, and in both cases empty: the content of a cheque's is as good as money.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

import structlog

from core.ids import uuid7
from core.secrets.secretbox import SecretBox
from core.settings.settings import Settings
from models.db import fair, locks
from models.db.after_commit import Bell, ring
from models.db.base import execute, in_transaction, rows, value
from models.db.locks import LockSeed
from models.db.table import BY_DATABASE, Table

log = structlog.get_logger()

# The n-th entry is the wait after the n-th failure.
DELAYS_S: Final = (60, 300, 900, 3_600, 10_800)
ATTEMPTS_MAX: Final = len(DELAYS_S) + 1
# Longer than a turn of a worker and its last attempt take.
LEASE_S: Final = 300
ERROR_CHARS_MAX: Final = 200
KEPT_DAYS: Final = 30

Kind = Literal["cheque", "receipt", "payment", "notice"]

_FREE: Final = "(e.leased_until IS NULL OR e.leased_until <= app_now())"
# The part after a plus in an address does not change the mailbox. In SQL as the index has it.
_TAG: Final = re.compile(r"\+[^@]*@")
_MAILBOX: Final = r"regexp_replace(lower(recipient), '\+[^@]*@', '@')"
# Security notices count for no other cap than their own.
_TODAY: Final = "kind <> 'notice' AND created_at > app_now() - interval '24 hours'"
_DUE: Final = fair.fair(
    "emails e",
    "e.status = 'pending'",
    due=f"e.next_attempt_at <= app_now() AND {_FREE}",
    order="e.next_attempt_at",
    since="next_attempt_at",
)


class EmailRow(Table, table="emails e"):
    """An e-mail, and its attempts so far."""

    id: UUID
    merchant_id: UUID
    object_id: UUID
    kind: Kind
    recipient: str
    subject: str
    body_box: str
    status: str = BY_DATABASE
    attempts: int = BY_DATABASE
    next_attempt_at: datetime = BY_DATABASE
    lease: UUID | None = BY_DATABASE
    leased_until: datetime | None = BY_DATABASE
    last_error: str | None = BY_DATABASE
    created_at: datetime = BY_DATABASE

    def open(self, box: SecretBox) -> bytes:
        """Return the body. Raises SecretBoxError."""
        return box.open(self.body_box, bound_to=binding(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An e-mail to write: the id of its subject, its recipient and its text."""

    object_id: UUID
    recipient: str
    subject: str
    body: bytes


class Post(NamedTuple):
    """Settings of e-mails that models write: the box that seals them, payments' pages and the caps of 24 hours."""

    box: SecretBox
    pay_url: str
    recipient_day_max: int
    merchant_day_max: int


class _Process:
    post: Post | None = None


def use(settings: Settings) -> None:
    """Have e-mails written by what the settings say, in the whole process; by settings without SMTP_URL, none."""
    _Process.post = None
    if settings.smtp_url:
        _Process.post = Post(
            box=SecretBox(settings.secret_keys),
            pay_url=settings.pay_url,
            recipient_day_max=settings.email_recipient_day_max,
            merchant_day_max=settings.email_merchant_day_max,
        )


def post() -> Post | None:
    """Return what use() made known; None where this gateway sends no e-mail."""
    return _Process.post


def add(merchant_id: UUID, drafts: Sequence[Draft], *, kind: Kind, box: SecretBox) -> list[UUID]:
    """Write e-mails in the caller's transaction and return their ids; those above a cap are left out."""
    if not in_transaction():
        raise RuntimeError("an e-mail is written in the transaction of what it tells of")
    drafts = _within_caps(merchant_id, drafts)
    if not drafts:
        return []
    new = [
        EmailRow(
            id=email_id, merchant_id=merchant_id, object_id=draft.object_id, kind=kind, recipient=draft.recipient,
            subject=draft.subject, body_box=box.seal(draft.body, bound_to=binding(email_id)),
        )
        for email_id, draft in ((uuid7(), draft) for draft in drafts)
    ]  # fmt: skip
    EmailRow.write_all(new)
    ring(Bell.DELIVER_EMAILS)
    return [email.id for email in new]


def add_uncapped(
    merchant_id: UUID, recipient: str, *, subject: str, body: bytes, kind: Kind, due_at: datetime, box: SecretBox
) -> None:
    """Write an e-mail that no cap holds back, in the caller's transaction; it is sent from due_at on."""
    email_id = uuid7()
    EmailRow(
        id=email_id, merchant_id=merchant_id, object_id=merchant_id, kind=kind, recipient=recipient, subject=subject,
        body_box=box.seal(body, bound_to=binding(email_id)), next_attempt_at=due_at,
    ).write()  # fmt: skip
    ring(Bell.DELIVER_EMAILS)


def rewrite(waiting: EmailRow, body: bytes, *, box: SecretBox) -> None:
    """Replace the body of a locked e-mail that no worker has begun to send."""
    execute("UPDATE emails SET body_box = %s WHERE id = %s", (box.seal(body, bound_to=binding(waiting.id)), waiting.id))


def wait_turn(merchant_id: UUID) -> None:
    """Let others who write e-mails of a merchant wait until the caller's transaction ends.

    Take this lock before any balance, as settlement, strays, reversals, refunds and cheques do: otherwise each could
    wait for the other.
    """
    if _Process.post is not None:
        locks.wait_turn(str(merchant_id), seed=LockSeed.EMAILS)


def _within_caps(merchant_id: UUID, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Return the drafts that one mailbox, and one merchant, may be sent within 24 hours."""
    post = _Process.post
    if post is None:
        return drafts
    # Two that count at the same time would both find room for the last one.
    wait_turn(merchant_id)
    mailboxes = {_mailbox(draft.recipient) for draft in drafts}
    sent = dict(
        rows(
            f"SELECT {_MAILBOX}, count(*) FROM emails WHERE merchant_id = %s AND {_MAILBOX} = ANY(%s) AND {_TODAY}"
            " GROUP BY 1",
            (merchant_id, list(mailboxes)),
        )
    )
    of_merchant = value(f"SELECT count(*) FROM emails WHERE merchant_id = %s AND {_TODAY}", (merchant_id,))
    room = post.merchant_day_max - int(of_merchant)
    allowed: list[Draft] = []
    for draft in drafts:
        mailbox = _mailbox(draft.recipient)
        if len(allowed) < room and sent.get(mailbox, 0) < post.recipient_day_max:
            sent[mailbox] = sent.get(mailbox, 0) + 1
            allowed.append(draft)
    if len(allowed) < len(drafts):
        log.warning("email.capped", merchant_id=str(merchant_id), left_out=len(drafts) - len(allowed))
    return allowed


def allows_notice(merchant_id: UUID, recipient: str) -> bool:
    """Return True if a mailbox may be sent another notice of a merchant before the next pause ends."""
    post = _Process.post
    of_mailbox = value(
        f"SELECT count(*) FROM emails WHERE merchant_id = %s AND {_MAILBOX} = %s AND kind = 'notice'"
        " AND created_at > app_now() - interval '24 hours'",
        (merchant_id, _mailbox(recipient)),
    )
    return post is not None and int(of_mailbox) < post.recipient_day_max


def _mailbox(recipient: str) -> str:
    """Return the mailbox of an address: without the tag that most servers take (ann+shop@) and in lower case."""
    return _TAG.sub("@", recipient.lower(), count=1)


def binding(email_id: UUID) -> str:
    """Return the text by which a seal is bound to its row."""
    return f"email:{email_id}"


def lease_due(limit: int) -> list[EmailRow]:
    """Lease due e-mails for LEASE_S, of every merchant about as many."""
    return EmailRow.rows_of(
        f"WITH wanted AS ({_DUE}),"
        # A row that another worker is leasing is passed by, and one that it has leased meanwhile is no longer due.
        f" free AS (SELECT e.id FROM emails e WHERE e.id IN (SELECT id FROM wanted) AND e.status = 'pending'"
        f"  AND {_FREE} FOR UPDATE SKIP LOCKED)"
        " UPDATE emails e SET lease = %(lease)s, leased_until = app_now() + make_interval(secs => %(lease_s)s)"
        f" FROM free WHERE e.id = free.id RETURNING {EmailRow.LIST}",
        {"limit": limit, "lease": uuid7(), "lease_s": LEASE_S},
    )


def note_sent(email: EmailRow) -> None:
    """Note that an e-mail is out, and forget what it said, unless the lease is another's by now."""
    execute(
        "UPDATE emails SET status = 'sent', attempts = attempts + 1, body_box = '', last_error = NULL, lease = NULL,"
        " leased_until = NULL WHERE id = %s AND lease = %s",
        (email.id, email.lease),
    )


def note_failed(email: EmailRow, error: str, *, is_final: bool) -> None:
    """Note that an attempt failed: it is made again later, or given up and forgotten."""
    is_dead = is_final or email.attempts + 1 >= ATTEMPTS_MAX
    wait_s = 0 if is_dead else DELAYS_S[email.attempts]
    execute(
        "UPDATE emails SET status = %s, attempts = attempts + 1, body_box = CASE WHEN %s THEN '' ELSE body_box END,"
        " last_error = %s, lease = NULL, leased_until = NULL, next_attempt_at = app_now() + make_interval(secs => %s)"
        " WHERE id = %s AND lease = %s",
        ("dead" if is_dead else "pending", is_dead, error[:ERROR_CHARS_MAX], wait_s, email.id, email.lease),
    )


def put_back(emails: Collection[EmailRow], *, wait_s: int, error: str | None = None) -> None:
    """End the leases of what was not attempted; it is due again after wait_s."""
    execute(
        "UPDATE emails SET lease = NULL, leased_until = NULL, last_error = COALESCE(%s, last_error),"
        " next_attempt_at = app_now() + make_interval(secs => %s) WHERE id = ANY(%s) AND lease = ANY(%s)",
        (error and error[:ERROR_CHARS_MAX], wait_s, [email.id for email in emails], [email.lease for email in emails]),
    )


def prune(*, limit: int) -> int:
    """Forget some e-mails that are over for KEPT_DAYS; return how many."""
    return execute(
        "DELETE FROM emails WHERE id = ANY (ARRAY(SELECT id FROM emails WHERE status <> 'pending'"
        " AND created_at < app_now() - make_interval(days => %s) ORDER BY created_at LIMIT %s))",
        (KEPT_DAYS, limit),
    )

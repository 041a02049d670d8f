"""Seals secrets again by the first of SECRET_KEYS, so that older keys can go. Called by cli.secret_keys.

Each batch is a transaction of its own that locks its rows: processes may read, write and empty others meanwhile, and a
command that is killed loses at most one batch. A row that another transaction has locked is left to the next walk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from core.ids import NIL
from core.secrets.secretbox import SecretBox, SecretBoxError
from models.db.base import execute, rows, transaction
from models.merchants import emails
from models.merchants import rows as merchants
from models.webhooks import outbox

BATCH_MAX: Final = 500
WALKS_MAX: Final = 5
PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A column of sealed secrets, the column by whose value each is bound to its row, and that binding."""

    table: str
    column: str
    named_by: str
    binding: Callable[[Any], str]


# A test compares this list with the columns of the schema.
SEALED: Final = (
    Sealed(table="api_keys", column="secret_box", named_by="public_id", binding=merchants.binding),
    Sealed(table="webhook_endpoints", column="secret_box", named_by="id", binding=outbox.binding),
    # Empty once an e-mail is sent or given up.
    Sealed(table="emails", column="body_box", named_by="id", binding=emails.binding),
)


def seal_all(sealed: Sealed, box: SecretBox, *, batch: int = BATCH_MAX) -> int:
    """Seal every row of a column by the first key; return their number. Not inside a transaction.

    Walks again over rows that were locked, or sealed by another process meanwhile, at most WALKS_MAX times.
    """
    done = _walk(sealed, box, batch)
    for _ in range(WALKS_MAX - 1):
        if not remaining(sealed, box):
            break
        time.sleep(PAUSE_S)
        done += _walk(sealed, box, batch)
    return done


def remaining(sealed: Sealed, box: SecretBox) -> dict[str, int]:
    """Return the number of rows that are sealed by another key than the first, by the id of their key."""
    return dict(
        rows(
            f"SELECT split_part({sealed.column}, ':', 1), count(*) FROM {sealed.table}"
            f" WHERE {_is_older(sealed)} GROUP BY 1 ORDER BY 1",
            {"first": f"{box.current}:"},
        )
    )


def _walk(sealed: Sealed, box: SecretBox, batch: int) -> int:
    """Seal rows from the oldest to the newest, a batch at a time."""
    after, done = NIL, 0
    while True:
        with transaction():
            locked = _locked(sealed, box, after=after, limit=batch)
            done += _seal(sealed, box, locked)
        if not locked:
            return done
        after = locked[-1][0]


def _locked(sealed: Sealed, box: SecretBox, *, after: UUID, limit: int) -> list[tuple[UUID, Any, str]]:
    return rows(
        f"SELECT id, {sealed.named_by}, {sealed.column} FROM {sealed.table}"
        f" WHERE id > %(after)s AND {_is_older(sealed)}"
        " ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED",
        {"after": after, "first": f"{box.current}:", "limit": limit},
    )


def _is_older(sealed: Sealed) -> str:
    return f"{sealed.column} <> '' AND NOT starts_with({sealed.column}, %(first)s)"


def _seal(sealed: Sealed, box: SecretBox, locked: list[tuple[UUID, Any, str]]) -> int:
    """Write the new seals of locked rows; return the number of those whose old one opened."""
    new = {row_id: _resealed(box, old, sealed.binding(name)) for row_id, name, old in locked}
    opened = {row_id: text for row_id, text in new.items() if text is not None}
    return execute(
        f"UPDATE {sealed.table} t SET {sealed.column} = n.box FROM unnest(%s::uuid[], %s::text[]) AS n (id, box)"
        " WHERE t.id = n.id",
        (list(opened), list(opened.values())),
    )


def _resealed(box: SecretBox, old: str, bound_to: str) -> str | None:
    """Return a secret under the first key; None if no key of SECRET_KEYS opens it."""
    try:
        return box.seal(box.open(old, bound_to=bound_to), bound_to=bound_to)
    except SecretBoxError:
        return None

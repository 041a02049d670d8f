"""Pages long lists: a cursor names the last row of the page before, moments bound what is listed. Used by models."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import UUID

from core.errors import DomainError
from core.ids import least_id
from models.db.base import value

# datetime.fromisoformat accepts more than this; forms that it would have to guess are refused.
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# Time zones are at most 14 hours from UTC, and PostgreSQL accepts none of 16 hours or more.
_OFFSET_MAX: Final = timedelta(hours=15, minutes=59)

# Ids begin with the time by their maker's clock, which differs from the database's by less than this.
_CLOCKS_APART_S: Final = 3_600


class Listed(Protocol):
    """What a row needs to be a page's last."""

    @property
    def id(self) -> Any:
        """Return the row's own UUID."""


T = TypeVar("T", bound=Listed)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, newest first, and the cursor of what follows; None on the last page."""

    items: list[T]
    next_cursor: str | None


def created_between(
    row_id: UUID, created_at: datetime, *, earliest: datetime | None, end: datetime | None
) -> list[bool]:
    """Return the conditions that rows were created in a time and have the ids of it. Takes a table's two columns.

    Lists go by the id, and would else read all that came after that time, and all before it.
    """
    # A clock that was moved is ahead of the ids; it only ever moves forward.
    ahead_s = value("SELECT extract(epoch FROM ahead)::float8 FROM app_clock") if earliest else 0
    return [
        earliest is None or created_at >= earliest,
        earliest is None or row_id >= least_id(earliest.timestamp() - ahead_s - _CLOCKS_APART_S),
        end is None or created_at < end,
        end is None or row_id <= least_id(end.timestamp() + _CLOCKS_APART_S),
    ]


def cut_page(rows: list[T], *, limit: int) -> Page[T]:
    """Make a page of rows that were read with one more than the limit; that one shows that another page follows."""
    items = rows[:limit]
    return Page(items=items, next_cursor=encode_cursor(items[-1].id) if len(rows) > limit else None)


def encode_cursor(last: UUID) -> str:
    """Return the cursor of the page that follows a row."""
    return base64.urlsafe_b64encode(last.bytes).decode().rstrip("=")


def decode_cursor(text: str, *, error: type[DomainError]) -> UUID:
    """Return the row that a page came to an end with. Raises `error` for what encode_cursor would not have made."""
    try:
        row_id = UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise error from None
    if encode_cursor(row_id) != text:
        raise error
    return row_id


def read_end(text: str, *, error: type[DomainError]) -> datetime:
    """Return the moment before which a list ends: of a day without a time, the day's end. Raises `error`."""
    moment = read_moment(text, error=error)
    if len(text) != len("2026-01-31"):
        return moment
    try:
        return moment + timedelta(days=1)
    except OverflowError:
        # The last day that a datetime knows ends with its last moment.
        return datetime.max.replace(tzinfo=UTC)


def read_moment(text: str, *, error: type[DomainError]) -> datetime:
    """Return an ISO 8601 date or moment in UTC, which it is in if it names no zone. Raises `error` for all else."""
    if _MOMENT.fullmatch(text) is None:
        raise error
    try:
        moment = datetime.fromisoformat(text)
        offset = moment.utcoffset() or timedelta()
        # In UTC it may be before the first year or after the last.
        in_utc = (moment - offset).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise error from None
    if abs(offset) > _OFFSET_MAX:
        raise error
    return in_utc

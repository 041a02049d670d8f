"""Pages of long lists: a cursor names the last row of the page before. Used by the models that list things."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from core.errors import DomainError


class Listed(Protocol):
    """What a row needs to be a page's last."""

    @property
    def id(self) -> Any:
        """The row's own UUID."""


T = TypeVar("T", bound=Listed)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, newest first, and the cursor of what follows; None on the last page."""

    items: list[T]
    next_cursor: str | None


def cut_page(found: list[T], *, limit: int) -> Page[T]:
    """Make a page of rows that were read with one more than the limit, which tells whether another page follows."""
    items = found[:limit]
    return Page(items=items, next_cursor=encode_cursor(items[-1].id) if len(found) > limit else None)


def encode_cursor(last: UUID) -> str:
    """Return the cursor of the page that follows a row."""
    return base64.urlsafe_b64encode(last.bytes).decode().rstrip("=")


def decode_cursor(text: str, *, error: type[DomainError]) -> UUID:
    """Return the row that a page came to an end with. Raises `error` for what encode_cursor would not have made."""
    try:
        found = UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise error from None
    if encode_cursor(found) != text:
        raise error
    return found

"""Makes identifiers for rows, calls and requests. Called wherever something new gets a name."""

import re
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7

_SPELLING: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

NIL: Final = UUID(int=0)
"""An unused identifier below all others, at which a walk that goes round begins."""


def uuid7() -> UUID:
    """Return a new UUIDv7: unguessable, and in order of time so that index pages fill from one side."""
    return _uuid7()


def least_id(unix_s: float) -> UUID:
    """Return the least identifier that something made at a moment can have."""
    return UUID(int=max(0, int(unix_s * 1000)) << 80)


def is_uuid(text: str) -> bool:
    """Return True if a text is a UUID in its usual spelling; Python's UUID takes others as well."""
    return _SPELLING.fullmatch(text) is not None

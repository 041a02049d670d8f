"""Makes identifiers for rows, calls and requests. Called wherever something new gets a name."""

from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7


def uuid7() -> UUID:
    """Return a new UUIDv7: unguessable, and in order of time so that index pages fill from one side."""
    return _uuid7()
